import { expect, test } from 'vitest';
import { asMarkdown, entriesOf, merged, type Message, withoutTail } from './conversation';
import { applyEvent, newTurn } from './turn';

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const source = { kind: 'demo', provider: 'demo', model: 'm' };
const messages: Message[] = [
  user('add'),
  {
    role: 'assistant',
    turn: 't1',
    source,
    latency_ms: 10,
    usage: { input_tokens: 5, output_tokens: 1 },
    content: [
      { type: 'reasoning', text: 'I add', opaque: { react: 'thought' } },
      { type: 'tool_call', id: 'c1', name: 'add', arguments: { a: 1 } },
    ],
  },
  { role: 'tool', call: 'c1', name: 'add', content: [{ type: 'text', text: '3' }], is_error: false, latency_ms: 2 },
  {
    role: 'assistant',
    turn: 't1',
    source,
    latency_ms: 20,
    usage: { input_tokens: 7, output_tokens: 2 },
    content: [{ type: 'text', text: 'It is 3' }],
  },
  user('and now?'),
];

test('the replies and results of one turn are one entry', () => {
  const entries = entriesOf(messages);
  expect(entries.map(({ kind }) => kind)).toEqual(['user', 'answer', 'user']);
  expect(entries[1]).toMatchObject({
    latencyMs: 32,
    turn: {
      id: 't1',
      provider: 'demo',
      strategy: 'react',
      usage: { input_tokens: 12, output_tokens: 3 },
      steps: [{ kind: 'thinking' }, { kind: 'call', state: 'done', latencyMs: 2 }, { kind: 'text' }],
    },
  });
  expect(entries[2]).toMatchObject({ index: 4, text: 'and now?' });
  expect(entriesOf(messages)).toEqual(entries);
});

test('a turn that was followed stands in the place of its stored form, and a new one at the end', () => {
  const known = applyEvent(newTurn('t1'), 1, { type: 'content', delta: 'followed' });
  const sent = newTurn('t2');
  const shown = merged(entriesOf(messages), [known, sent]);
  expect(shown.map((entry) => (entry.kind === 'answer' ? entry.turn.id : entry.text))).toEqual([
    'add',
    't1',
    'and now?',
    't2',
  ]);
  expect(shown[1]).toMatchObject({ turn: { steps: [{ text: 'followed' }] } });
  expect(merged(entriesOf(messages), [newTurn('t1')])[1]).toMatchObject({ turn: { phase: 'completed' } });
});

test('writing a message again hides it and all after it', () => {
  expect(withoutTail(3, 5)).toEqual([
    { op: 'delete_at', index: 3 },
    { op: 'delete_at', index: 4 },
  ]);
  expect(withoutTail(5, 5)).toEqual([]);
});

test('Markdown has what was said and called, and fences that hold', () => {
  const text = asMarkdown('Sums', entriesOf([...messages.slice(0, 4), user('```')]));
  expect(text).toContain('# Sums');
  expect(text).toContain('> I add');
  expect(text).toContain('Calls `add`:\n\n```json\n{\n  "a": 1\n}\n```');
  expect(text).toContain('It is 3');
  const result: Message[] = structuredClone(messages.slice(0, 3));
  if (result[2].role === 'tool') result[2].content = [{ type: 'text', text: '```\nx\n```' }];
  expect(asMarkdown('x', entriesOf(result))).toContain('````\n```\nx\n```\n````');
});
