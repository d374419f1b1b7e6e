/** Calls that this tab has made, with their arguments. The board's records hold only a digest of them. */
import { useSyncExternalStore } from 'react';
import type { JsonObject } from './drafts';

export interface PastCall {
  at: number;
  arguments: JsonObject;
  outcome: string;
  runMs?: number;
  result?: unknown;
}

const PREFIX = 'switchboard-history:';
const KEPT = 20;
/** A larger result is not kept. */
const LARGEST = 20_000;
const cache = new Map<string, PastCall[]>();
const listeners = new Set<() => void>();

export function pastCalls(tool: string): PastCall[] {
  const known = cache.get(tool);
  if (known !== undefined) return known;
  let calls: PastCall[] = [];
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(PREFIX + tool) ?? '[]');
    if (Array.isArray(stored)) calls = stored as PastCall[];
  } catch {
    // What cannot be read is forgotten.
  }
  cache.set(tool, calls);
  return calls;
}

export function remember(tool: string, call: PastCall): void {
  const isLarge = JSON.stringify(call.result ?? null).length > LARGEST;
  const calls = [isLarge ? { ...call, result: undefined } : call, ...pastCalls(tool)].slice(0, KEPT);
  cache.set(tool, calls);
  try {
    sessionStorage.setItem(PREFIX + tool, JSON.stringify(calls));
  } catch {
    // The storage is full: it is known until the next reload.
  }
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function usePastCalls(tool: string): PastCall[] {
  return useSyncExternalStore(subscribe, () => pastCalls(tool));
}
