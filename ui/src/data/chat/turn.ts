/** A turn as it is shown: its steps, made from its events one by one. Pure. */
import type { components } from '../../api/schema';

type Schemas = components['schemas'];
export type TurnEvent = Schemas['TurnEvent'];
export type TurnProblem = Schemas['TurnProblem'];
export type Part = Schemas['Part'];
export type Usage = Schemas['Usage'];

export interface CallStep {
  kind: 'call';
  key: string;
  /** Switchboard's id of the call; absent while the model writes it. */
  id?: string;
  name: string;
  /** The arguments as they are being written. */
  written: string;
  arguments?: unknown;
  state: 'writing' | 'running' | 'done' | 'failed' | 'abandoned';
  /** When it began to run, in the time of this browser. */
  startedAt?: number;
  progress?: { progress: number; total?: number | null; message?: string | null };
  content?: Part[];
  structured?: unknown;
  latencyMs?: number | null;
  /** What the model of a ReACT turn reads as the result. */
  observation?: string;
}

export type Step =
  | { kind: 'text'; key: string; text: string }
  | { kind: 'thinking'; key: string; text: string; thought: boolean }
  | CallStep
  /** A reply of a ReACT turn that could not be used, and what the model is told. */
  | { kind: 'observation'; key: string; text: string; isError: boolean }
  /** Text that counts for nothing, because the model was asked again. */
  | { kind: 'void'; key: string; reason: string; steps: Step[] }
  | { kind: 'notice'; key: string; text: string };

export type TurnPhase = 'sending' | 'running' | 'completed' | 'cancelled' | 'failed' | 'limited' | 'lost';

export interface Turn {
  id: string;
  phase: TurnPhase;
  provider?: string;
  model?: string;
  strategy?: string;
  toolsRevision?: number;
  steps: Step[];
  /** The index of the first step of the current request. */
  requestStart: number;
  /** The call that each index of the current request stands for. */
  writing: Record<number, string>;
  usage?: Usage;
  error?: TurnProblem;
  stop?: string | null;
  /** The id of the last event, to resume after. */
  lastId: number;
}

export function newTurn(id: string): Turn {
  return { id, phase: 'sending', steps: [], requestStart: 0, writing: {}, lastId: 0 };
}

export const isOver = ({ phase }: Turn): boolean => phase !== 'sending' && phase !== 'running';

function appended(turn: Turn, step: Step): Turn {
  return { ...turn, steps: [...turn.steps, step] };
}

const keyOf = (turn: Turn, eventId: number): string => `${turn.id}-${eventId}`;

/** Adds to the last step if it is of this kind and of the current request, else begins one. */
function extended(turn: Turn, eventId: number, kind: 'text' | 'thinking', delta: string): Turn {
  const last = turn.steps.at(-1);
  if (last?.kind === kind && turn.steps.length > turn.requestStart && !(last.kind === 'thinking' && last.thought)) {
    return { ...turn, steps: [...turn.steps.slice(0, -1), { ...last, text: last.text + delta }] };
  }
  const key = keyOf(turn, eventId);
  return appended(turn, kind === 'text' ? { kind, key, text: delta } : { kind, key, text: delta, thought: false });
}

function withCall(turn: Turn, match: (call: CallStep) => boolean, change: (call: CallStep) => CallStep): Turn {
  const index = turn.steps.findLastIndex((step) => step.kind === 'call' && match(step));
  if (index < 0) return turn;
  const steps = [...turn.steps];
  steps[index] = change(steps[index] as CallStep);
  return { ...turn, steps };
}

/** Folds what the current request has said: a call that ran keeps its place, all else counts for nothing. */
function discarded(turn: Turn, eventId: number, reason: string): Turn {
  const before = turn.steps.slice(0, turn.requestStart);
  const since = turn.steps.slice(turn.requestStart);
  const ran = since.filter((step) => step.kind === 'call' && step.state !== 'writing');
  const dropped = since.filter((step) => !ran.includes(step));
  const fold: Step = { kind: 'void', key: keyOf(turn, eventId), reason, steps: dropped };
  const steps = [...before, ...ran, fold];
  return { ...turn, steps, requestStart: steps.length, writing: {} };
}

function begun(turn: Turn, event: Extract<TurnEvent, { type: 'tool_call' }>, eventId: number, now: number): Turn {
  const { id, name } = event;
  const running = { id, name, arguments: event.arguments, state: 'running' as const, startedAt: now };
  const waiting = turn.steps.find((step) => step.kind === 'call' && step.state === 'writing' && step.name === name);
  if (waiting !== undefined) {
    return withCall(
      turn,
      (call) => call.key === waiting.key,
      (call) => ({ ...call, ...running }),
    );
  }
  return appended(turn, { kind: 'call', key: keyOf(turn, eventId), written: '', ...running });
}

function ended(turn: Turn): Turn {
  const steps = turn.steps.map((step) =>
    step.kind === 'call' && (step.state === 'writing' || step.state === 'running')
      ? { ...step, state: 'abandoned' as const }
      : step,
  );
  return { ...turn, steps };
}

const problem = ({ message }: TurnProblem): string => message;

/** The turn after one more event. An event that was seen already changes nothing. */
export function applyEvent(turn: Turn, eventId: number, event: TurnEvent, now: number = Date.now()): Turn {
  if (eventId <= turn.lastId) return turn;
  return { ...step(turn, eventId, event, now), lastId: eventId };
}

function step(turn: Turn, eventId: number, event: TurnEvent, now: number): Turn {
  const key = keyOf(turn, eventId);
  switch (event.type) {
    case 'started':
      return {
        ...turn,
        phase: 'running',
        provider: event.provider,
        model: event.model,
        strategy: event.strategy ?? undefined,
        toolsRevision: event.tools_revision,
        requestStart: turn.steps.length,
        writing: {},
      };
    case 'content':
      return extended(turn, eventId, 'text', event.delta);
    case 'thinking':
      return extended(turn, eventId, 'thinking', event.delta);
    case 'tool_call_begun':
      return {
        ...appended(turn, { kind: 'call', key, name: event.name, written: '', state: 'writing' }),
        writing: { ...turn.writing, [event.index]: key },
      };
    case 'tool_call_delta': {
      const written = turn.writing[event.index];
      return withCall(
        turn,
        (call) => call.key === written,
        (call) => ({ ...call, written: call.written + event.delta }),
      );
    }
    case 'tool_call':
      return begun(turn, event, eventId, now);
    case 'tool_progress': {
      const { progress, total, message } = event;
      return withCall(
        turn,
        ({ id }) => id === event.id,
        (call) => ({ ...call, progress: { progress, total, message } }),
      );
    }
    case 'tool_result': {
      const result = {
        content: event.content,
        structured: event.structured,
        latencyMs: event.latency_ms,
        state: event.is_error ? ('failed' as const) : ('done' as const),
      };
      const known = turn.steps.some((each) => each.kind === 'call' && each.id === event.id);
      if (!known) return appended(turn, { kind: 'call', key, id: event.id, name: event.name, written: '', ...result });
      return withCall(
        turn,
        ({ id }) => id === event.id,
        (call) => ({ ...call, ...result }),
      );
    }
    case 'thought': {
      const last = turn.steps.at(-1);
      const thought: Step = { kind: 'thinking', key, text: event.text, thought: true };
      if (last?.kind !== 'thinking') return appended(turn, thought);
      return { ...turn, steps: [...turn.steps.slice(0, -1), { ...thought, key: last.key }] };
    }
    case 'action':
      return turn;
    case 'observation':
      if (event.id === undefined || event.id === null)
        return appended(turn, { kind: 'observation', key, text: event.text, isError: event.is_error });
      return withCall(
        turn,
        ({ id }) => id === event.id,
        (call) => ({ ...call, observation: event.text }),
      );
    case 'answer':
      return turn;
    case 'strategy':
      return appended(turn, { kind: 'notice', key, text: `Goes on with ${event.strategy}: ${event.reason}` });
    case 'state':
      return appended(turn, { kind: 'notice', key, text: `The state is now ${event.state}` });
    case 'usage':
      return { ...turn, usage: event.turn };
    case 'restarted':
      return discarded(
        turn,
        eventId,
        `The tools changed to revision ${event.tools_revision}: the model is asked again`,
      );
    case 'retrying':
      return discarded(
        turn,
        eventId,
        `Attempt ${event.attempt} failed (${problem(event.error)}): asked again after ${event.after_ms} ms`,
      );
    case 'error':
      return { ...turn, error: event.error };
    case 'done':
      return { ...ended(turn), phase: event.status, usage: event.usage, stop: event.stop };
    default:
      return turn;
  }
}
