/** Times and amounts in words, in one way everywhere. */
import { useSyncExternalStore } from 'react';

export function ago(from: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - from) / 1000));
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${seconds} s ago`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ago`;
  return `${Math.floor(hours / 24)} days ago`;
}

export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1).replace(/\.0$/, '')} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(1)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}

const ticking = new Set<() => void>();
let current = Date.now();
let interval: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  ticking.add(listener);
  interval ??= setInterval(() => {
    current = Date.now();
    for (const each of ticking) each();
  }, 1_000);
  return () => {
    ticking.delete(listener);
    if (ticking.size === 0) {
      clearInterval(interval);
      interval = undefined;
    }
  };
}

/** The time, once a second; all components share one timer. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => (interval === undefined ? (current = roundedNow()) : current));
}

/** Stable within a second, so that a snapshot does not change while React reads it. */
function roundedNow(): number {
  return Math.floor(Date.now() / 1000) * 1000;
}
