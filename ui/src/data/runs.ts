/** Calls made from this tab. They run outside of the screens: leaving a screen does not cancel them. */
import { createParser } from 'eventsource-parser';
import { useSyncExternalStore } from 'react';
import { boardFetch } from '../api/client';
import { ApiError, problemOf } from '../api/problem';
import type { CallView } from '../api/types';
import type { JsonObject } from './drafts';
import { remember } from './history';

export interface Progress {
  progress: number;
  total?: number | null;
  message?: string | null;
}

export interface Run {
  tool: string;
  arguments: JsonObject;
  startedAt: number;
  endedAt?: number;
  progress?: Progress;
  logs: string[];
  call?: CallView;
  error?: unknown;
  isCancelled?: boolean;
}

const runs = new Map<string, Run>();
const aborts = new Map<string, AbortController>();
const listeners = new Set<() => void>();

function set(tool: string, run: Run): void {
  runs.set(tool, run);
  for (const listener of listeners) listener();
}

function update(tool: string, change: Partial<Run>): void {
  const run = runs.get(tool);
  if (run !== undefined) set(tool, { ...run, ...change });
}

/** Starts a call. An earlier one of the same tool that still runs is cancelled. */
export async function startRun(tool: string, args: JsonObject): Promise<void> {
  aborts.get(tool)?.abort();
  const abort = new AbortController();
  aborts.set(tool, abort);
  const startedAt = Date.now();
  set(tool, { tool, arguments: args, startedAt, logs: [] });
  const isCurrent = () => aborts.get(tool) === abort;
  try {
    const call = await callTool(tool, args, abort.signal, (change) => {
      if (isCurrent()) update(tool, change);
    });
    remember(tool, { at: startedAt, arguments: args, outcome: call.outcome, runMs: call.run_ms, result: call.result });
    if (isCurrent()) update(tool, { call, endedAt: Date.now() });
  } catch (error) {
    const isCancelled = abort.signal.aborted;
    const outcome = isCancelled ? 'cancelled' : error instanceof ApiError ? error.problem.title : 'failed';
    remember(tool, { at: startedAt, arguments: args, outcome });
    if (isCurrent()) update(tool, { error: isCancelled ? undefined : error, isCancelled, endedAt: Date.now() });
  } finally {
    if (isCurrent()) aborts.delete(tool);
  }
}

export function cancelRun(tool: string): void {
  aborts.get(tool)?.abort();
}

/** Asks for a stream with progress; a board that has none answers with the call itself. */
async function callTool(
  tool: string,
  args: JsonObject,
  signal: AbortSignal,
  onChange: (change: Partial<Run>) => void,
): Promise<CallView> {
  const response = await boardFetch(`/api/v1/tools/${encodeURIComponent(tool)}/call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream, application/json;q=0.9' },
    body: JSON.stringify({ arguments: args }),
    signal,
  });
  if (!response.ok) throw problemOf(response.status, await response.json().catch(() => undefined));
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || response.body === null) {
    return (await response.json()) as CallView;
  }
  return readCall(response.body, onChange);
}

async function readCall(body: ReadableStream<Uint8Array>, onChange: (change: Partial<Run>) => void): Promise<CallView> {
  let done: CallView | undefined;
  let failure: unknown;
  const logs: string[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      const value = JSON.parse(data) as Record<string, unknown>;
      if (event === 'progress') onChange({ progress: value as unknown as Progress });
      else if (event === 'log') {
        logs.push(typeof value.text === 'string' ? value.text : JSON.stringify(value.data ?? value));
        onChange({ logs: logs.slice(-200) });
      } else if (event === 'done') done = value as unknown as CallView;
      else if (event === 'error') {
        const problem = (value.problem ?? value) as { status?: number };
        failure = problemOf(problem.status ?? 500, problem);
      }
    },
  });
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  for (;;) {
    const { done: isEnd, value } = await reader.read();
    if (isEnd) break;
    parser.feed(value);
  }
  if (failure !== undefined) throw failure;
  if (done === undefined) throw problemOf(0, undefined);
  return done;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether a call of this tab has worked. */
export function useHasWorked(): boolean {
  return useSyncExternalStore(subscribe, () => [...runs.values()].some(({ call }) => call?.outcome === 'ok'));
}

export function useRun(tool: string): Run | undefined {
  return useSyncExternalStore(subscribe, () => runs.get(tool));
}
