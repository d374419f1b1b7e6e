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

/** What a server asks in the middle of a call. */
export interface Question {
  id: string;
  message: string;
  schema: unknown;
}

export type QuestionAction = 'accept' | 'decline' | 'cancel';

export interface Run {
  tool: string;
  /** The id by which the board knows the call. */
  id?: string;
  arguments: JsonObject;
  startedAt: number;
  endedAt?: number;
  progress?: Progress;
  logs: string[];
  /** What waits for an answer. */
  questions: Question[];
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

type Change = Partial<Run> | ((run: Run) => Partial<Run>);

function update(tool: string, change: Change): void {
  const run = runs.get(tool);
  if (run !== undefined) set(tool, { ...run, ...(typeof change === 'function' ? change(run) : change) });
}

/** Starts a call. An earlier one of the same tool that still runs is cancelled. */
export async function startRun(tool: string, args: JsonObject): Promise<void> {
  aborts.get(tool)?.abort();
  const abort = new AbortController();
  aborts.set(tool, abort);
  const startedAt = Date.now();
  set(tool, { tool, arguments: args, startedAt, logs: [], questions: [] });
  const isCurrent = () => aborts.get(tool) === abort;
  try {
    const call = await callTool(tool, args, abort.signal, (change) => {
      if (isCurrent()) update(tool, change);
    });
    remember(tool, { at: startedAt, arguments: args, outcome: call.outcome, runMs: call.run_ms, result: call.result });
    if (isCurrent()) update(tool, { call, questions: [], endedAt: Date.now() });
  } catch (error) {
    const isCancelled = abort.signal.aborted;
    const outcome = isCancelled ? 'cancelled' : error instanceof ApiError ? error.problem.title : 'failed';
    remember(tool, { at: startedAt, arguments: args, outcome });
    const end = { error: isCancelled ? undefined : error, isCancelled, questions: [], endedAt: Date.now() };
    if (isCurrent()) update(tool, end);
  } finally {
    if (isCurrent()) aborts.delete(tool);
  }
}

export function cancelRun(tool: string): void {
  aborts.get(tool)?.abort();
}

/** Answers what a server asks in a running call. A question that nobody waits for any more is gone afterwards, too. */
export async function answerQuestion(
  run: Run,
  question: Question,
  action: QuestionAction,
  content?: JsonObject,
): Promise<void> {
  const path = `/api/v1/calls/${encodeURIComponent(run.id ?? '')}/answers/${encodeURIComponent(question.id)}`;
  const response = await boardFetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(content === undefined ? { action } : { action, content }),
  });
  if (!response.ok && response.status !== 404)
    throw problemOf(response.status, await response.json().catch(() => undefined));
  if (runs.get(run.tool)?.id !== run.id) return;
  update(run.tool, ({ questions }) => ({ questions: questions.filter(({ id }) => id !== question.id) }));
}

/** Asks for a stream with progress; a board that has none answers with the call itself. */
async function callTool(
  tool: string,
  args: JsonObject,
  signal: AbortSignal,
  onChange: (change: Change) => void,
): Promise<CallView> {
  const response = await boardFetch(`/api/v1/tools/${encodeURIComponent(tool)}/call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream, application/json;q=0.9' },
    body: JSON.stringify({ arguments: args, answers_questions: true }),
    signal,
  });
  if (!response.ok) throw problemOf(response.status, await response.json().catch(() => undefined));
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || response.body === null) {
    return (await response.json()) as CallView;
  }
  return readCall(response.body, onChange);
}

async function readCall(body: ReadableStream<Uint8Array>, onChange: (change: Change) => void): Promise<CallView> {
  let done: CallView | undefined;
  let failure: unknown;
  const logs: string[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      const value = JSON.parse(data) as Record<string, unknown>;
      if (event === 'started') onChange({ id: value.id as string });
      else if (event === 'question')
        onChange((run) => ({ questions: [...run.questions, value as unknown as Question] }));
      else if (event === 'progress') onChange({ progress: value as unknown as Progress });
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
