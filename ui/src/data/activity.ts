/**
 * How the tools are used now: calls in flight, recent durations and errors of each. Seeded from the newest records and kept
 * up to date by the events of calls.
 */
import { useEffect, useSyncExternalStore } from 'react';
import { client } from '../api/client';
import type { RecordView } from '../api/types';
import { type BoardEvent, eventStream } from './event-stream';

/** The plots show this many steps of this many milliseconds. */
export const STEPS = 30;
export const STEP_MS = 10_000;
const KEPT = 200;
const SEED = 500;

interface Sample {
  at: number;
  ms: number;
  isError: boolean;
}

export interface ToolActivity {
  inFlight: number;
  samples: Sample[];
}

let activity = new Map<string, ToolActivity>();
const running = new Map<string, string>();
const seen = new Set<string>();
const listeners = new Set<() => void>();
let isStarted = false;
let timer: ReturnType<typeof setTimeout> | undefined;

function of(tool: string): ToolActivity {
  let entry = activity.get(tool);
  if (entry === undefined) activity.set(tool, (entry = { inFlight: 0, samples: [] }));
  return entry;
}

export function addRecord(
  record: Pick<RecordView, 'id' | 'tool' | 'started_at' | 'run_ms' | 'wait_ms' | 'outcome'>,
): void {
  if (record.tool === null || seen.has(record.id)) return;
  seen.add(record.id);
  if (seen.size > 20_000) seen.clear();
  const { samples } = of(record.tool);
  samples.push({ at: Date.parse(record.started_at), ms: record.run_ms, isError: record.outcome !== 'ok' });
  if (samples.length > KEPT) samples.splice(0, samples.length - KEPT);
}

/** Readers get a new map at most four times a second. */
function announce(): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    activity = new Map([...activity].map(([tool, entry]) => [tool, { ...entry }]));
    for (const listener of listeners) listener();
  }, 250);
}

function apply({ type, data }: BoardEvent): void {
  if (type === 'call_started') {
    const { id, tool } = data as { id: string; tool: string };
    running.set(id, tool);
    of(tool).inFlight += 1;
  } else if (type === 'call_ended') {
    const record = data as unknown as RecordView;
    const tool = running.get(record.id);
    if (tool !== undefined) {
      running.delete(record.id);
      const entry = of(tool);
      entry.inFlight = Math.max(0, entry.inFlight - 1);
    }
    addRecord(record);
  } else if (type === 'hello' || type === 'reset') {
    running.clear();
    for (const entry of activity.values()) entry.inFlight = 0;
  } else return;
  announce();
}

async function seed(): Promise<void> {
  try {
    const { data } = await client.GET('/api/v1/calls', { params: { query: { limit: SEED } } });
    for (const record of [...(data?.calls ?? [])].reverse()) addRecord(record);
    announce();
  } catch {
    // The plots begin empty.
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useActivity(): Map<string, ToolActivity> {
  useEffect(() => {
    if (isStarted) return;
    isStarted = true;
    eventStream.onEvent(apply);
    void seed();
  }, []);
  return useSyncExternalStore(subscribe, () => activity);
}

/** The given share of the samples is at most this long; `undefined` without samples. */
export function percentile(samples: { ms: number }[], share: number): number | undefined {
  if (samples.length === 0) return undefined;
  const sorted = samples.map(({ ms }) => ms).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
}

/** How many calls began in each step, oldest first. */
export function counts(samples: { at: number }[], now: number): number[] {
  const steps = new Array<number>(STEPS).fill(0);
  const end = Math.ceil(now / STEP_MS) * STEP_MS;
  for (const { at } of samples) {
    const step = STEPS - 1 - Math.floor((end - at) / STEP_MS);
    if (step >= 0 && step < STEPS) steps[step] += 1;
  }
  return steps;
}
