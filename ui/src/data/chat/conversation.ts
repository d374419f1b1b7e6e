/** The stored messages of a session as entries of a chat: what people said, and the steps of the answers. Pure. */
import type { components } from '../../api/schema';
import type { CallStep, Part, Step, Turn } from './turn';

type Schemas = components['schemas'];
export type Message = Schemas['Message'];

export type Entry =
  | { kind: 'user' | 'system'; key: string; index: number; text: string; others: Part[] }
  | { kind: 'answer'; key: string; turn: Turn; latencyMs: number };

export const textOf = (parts: Part[]): string =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');

type Assistant = Extract<Message, { role: 'assistant' }>;

function stepsOf(message: Assistant, index: number): Step[] {
  return message.content.flatMap((block, place): Step[] => {
    const key = `m${index}-${place}`;
    if (block.type === 'text') return block.text === '' ? [] : [{ kind: 'text', key, text: block.text }];
    if (block.type === 'reasoning') {
      const thought = typeof block.opaque === 'object' && block.opaque !== null && 'react' in block.opaque;
      return block.text === '' ? [] : [{ kind: 'thinking', key, text: block.text, thought }];
    }
    const call: CallStep = {
      kind: 'call',
      key,
      id: block.id,
      name: block.name,
      written: block.unreadable ?? '',
      arguments: block.arguments,
      state: 'abandoned',
    };
    return [call];
  });
}

const isReact = (steps: Step[]): boolean => steps.some((step) => step.kind === 'thinking' && step.thought);

/** Consecutive replies and results of one turn are one entry. `index` of an entry is that of its message. */
export function entriesOf(messages: Message[]): Entry[] {
  const entries: Entry[] = [];
  messages.forEach((message, index) => {
    const last = entries.at(-1);
    switch (message.role) {
      case 'user':
      case 'system': {
        const others = message.content.filter(({ type }) => type !== 'text');
        entries.push({ kind: message.role, key: `m${index}`, index, text: textOf(message.content), others });
        return;
      }
      case 'assistant': {
        const steps = stepsOf(message, index);
        const id = message.turn ?? `m${index}`;
        if (last?.kind === 'answer' && last.turn.id === id) {
          last.turn.steps.push(...steps);
          last.latencyMs += message.latency_ms ?? 0;
        } else {
          const turn: Turn = { id, phase: 'completed', steps, requestStart: 0, writing: {}, lastId: 0 };
          entries.push({ kind: 'answer', key: `m${index}`, turn, latencyMs: message.latency_ms ?? 0 });
        }
        const entry = entries.at(-1);
        if (entry?.kind !== 'answer') return;
        entry.turn.provider = message.source?.provider;
        entry.turn.model = message.source?.model;
        entry.turn.stop = message.stop;
        if (message.stop === 'cancelled') entry.turn.phase = 'cancelled';
        entry.turn.toolsRevision = message.tools_revision ?? undefined;
        entry.turn.strategy = isReact(entry.turn.steps) ? 'react' : undefined;
        entry.turn.usage = sum(entry.turn.usage, message.usage ?? undefined);
        return;
      }
      case 'tool': {
        if (last?.kind !== 'answer') return;
        const call = last.turn.steps.find((step): step is CallStep => step.kind === 'call' && step.id === message.call);
        if (call === undefined) return;
        call.state = message.is_error ? 'failed' : 'done';
        call.content = message.content;
        call.structured = message.structured;
        call.latencyMs = message.latency_ms;
        last.latencyMs += message.latency_ms ?? 0;
      }
    }
  });
  return entries;
}

function sum(a: Turn['usage'], b: Turn['usage']): Turn['usage'] {
  if (a === undefined || b === undefined) return a ?? b;
  return {
    ...b,
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
  };
}

/**
 * The entries with the turns that this tab has followed in place of their stored form: these know what was discarded and why
 * a turn failed. A turn that has stored nothing yet comes at the end, after the message that began it.
 */
export function merged(entries: Entry[], followed: Turn[]): Entry[] {
  const byId = new Map(followed.map((turn) => [turn.id, turn]));
  const stored = new Set<string>();
  const shown = entries.map((entry): Entry => {
    if (entry.kind !== 'answer') return entry;
    stored.add(entry.turn.id);
    const turn = byId.get(entry.turn.id);
    return turn === undefined || turn.lastId === 0 ? entry : { ...entry, key: turn.id, turn };
  });
  const last = followed.at(-1);
  if (last !== undefined && !stored.has(last.id))
    shown.push({ kind: 'answer', key: last.id, turn: last, latencyMs: 0 });
  return shown;
}

/** The messages that a model does not see when the one at `from` is written again: it and all after it. */
export function withoutTail(from: number, count: number): { op: 'delete_at'; index: number }[] {
  return Array.from({ length: Math.max(0, count - from) }, (_, place) => ({ op: 'delete_at', index: from + place }));
}

/** The conversation as Markdown, for people. */
export function asMarkdown(title: string, entries: Entry[]): string {
  const lines = [`# ${title}`, ''];
  for (const entry of entries) {
    if (entry.kind !== 'answer') {
      lines.push(`## ${entry.kind === 'user' ? 'You' : 'System'}`, '', entry.text, '');
      continue;
    }
    lines.push(`## ${entry.turn.provider ?? 'Model'}${entry.turn.model ? ` (${entry.turn.model})` : ''}`, '');
    for (const step of entry.turn.steps) lines.push(...stepLines(step));
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

function fenced(text: string, language = ''): string[] {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return [`${fence}${language}`, text, fence, ''];
}

function stepLines(step: Step): string[] {
  switch (step.kind) {
    case 'text':
      return [step.text, ''];
    case 'thinking':
      return [...step.text.split('\n').map((line) => `> ${line}`), ''];
    case 'call': {
      const result = step.content === undefined ? [] : fenced(textOf(step.content));
      const args = step.arguments === undefined ? step.written : JSON.stringify(step.arguments, null, 2);
      return [
        `Calls \`${step.name}\`${step.state === 'failed' ? ', which failed' : ''}:`,
        '',
        ...fenced(args, 'json'),
        ...result,
      ];
    }
    case 'observation':
      return [`> ${step.text}`, ''];
    default:
      return [];
  }
}
