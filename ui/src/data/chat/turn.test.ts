import { expect, test } from 'vitest';
import { applyEvent, isOver, newTurn, type Step, type Turn, type TurnEvent } from './turn';

const started: TurnEvent = { type: 'started', turn: 't', provider: 'demo', model: 'demo', tools_revision: 3 };
const say = (delta: string): TurnEvent => ({ type: 'content', delta });
const think = (delta: string): TurnEvent => ({ type: 'thinking', delta });
const problem = { kind: 'overloaded', message: 'too busy', blame: 'provider', advice: 'wait' };
const usage = { input_tokens: 1, output_tokens: 2 };
const done: TurnEvent = { type: 'done', status: 'completed', usage, messages: 2 };

function play(events: TurnEvent[], from: Turn = newTurn('t')): Turn {
  return events.reduce((turn, event) => applyEvent(turn, turn.lastId + 1, event, 1000), from);
}

/** The steps in short: text, (thinking), tool:state, [discarded]. */
function short(steps: Step[]): string[] {
  return steps.map((step) => {
    switch (step.kind) {
      case 'text':
        return step.text;
      case 'thinking':
        return step.thought ? `Thought: ${step.text}` : `(${step.text})`;
      case 'call':
        return `${step.name}:${step.state}`;
      case 'void':
        return `[${short(step.steps).join(' ')}]`;
      default:
        return step.text;
    }
  });
}

test('text and thinking grow where they are, and change places', () => {
  const turn = play([started, think('hm'), think('m'), say('a '), say('b'), think('then'), say('c')]);
  expect(short(turn.steps)).toEqual(['(hmm)', 'a b', '(then)', 'c']);
  expect(turn).toMatchObject({ phase: 'running', provider: 'demo', toolsRevision: 3 });
});

test('an event that was seen already changes nothing', () => {
  const turn = play([started, say('once')]);
  expect(applyEvent(turn, 2, say('once'))).toBe(turn);
  expect(applyEvent(turn, 1, started)).toBe(turn);
});

test('parallel calls are written, run, tell their progress and end in any order', () => {
  let turn = play([
    started,
    { type: 'tool_call_begun', index: 0, name: 'wait' },
    { type: 'tool_call_begun', index: 1, name: 'wait' },
    { type: 'tool_call_delta', index: 1, delta: '{"ms"' },
    { type: 'tool_call_delta', index: 1, delta: ':2}' },
    { type: 'tool_call_delta', index: 0, delta: '{"ms":1}' },
  ]);
  expect(turn.steps.map((step) => step.kind === 'call' && step.written)).toEqual(['{"ms":1}', '{"ms":2}']);
  turn = play(
    [
      { type: 'tool_call', id: 'a', name: 'wait', arguments: { ms: 1 } },
      { type: 'tool_call', id: 'b', name: 'wait', arguments: { ms: 2 } },
      { type: 'tool_progress', id: 'b', progress: 1, total: 2, message: 'half' },
      { type: 'tool_result', id: 'b', name: 'wait', is_error: true, content: [{ type: 'text', text: 'no' }] },
    ],
    turn,
  );
  expect(turn.steps).toMatchObject([
    { id: 'a', state: 'running', arguments: { ms: 1 }, startedAt: 1000 },
    { id: 'b', state: 'failed', progress: { progress: 1, total: 2, message: 'half' }, content: [{ text: 'no' }] },
  ]);
});

test.each([
  { type: 'restarted', tools_revision: 4 } as TurnEvent,
  { type: 'retrying', attempt: 1, after_ms: 500, error: problem } as TurnEvent,
])('$type folds what the request said, keeps what was before and calls that ran', (again) => {
  const turn = play([
    started,
    say('kept'),
    { type: 'tool_call', id: 'a', name: 'add', arguments: {} },
    { type: 'tool_result', id: 'a', name: 'add', is_error: false, content: [] },
    started,
    think('x'),
    say('lost'),
    { type: 'tool_call_begun', index: 0, name: 'half' },
    again,
    started,
    say('new'),
  ]);
  expect(short(turn.steps)).toEqual(['kept', 'add:done', '[(x) lost half:writing]', 'new']);
  const fold = turn.steps[2];
  expect(fold.kind === 'void' && fold.reason).toMatch(again.type === 'restarted' ? /revision 4/ : /too busy.*500 ms/);
});

test('a call of the request that is repeated keeps its place if it ran', () => {
  const turn = play([
    started,
    say('lost'),
    { type: 'tool_call', id: 'a', name: 'add', arguments: {} },
    { type: 'tool_result', id: 'a', name: 'add', is_error: false, content: [] },
    { type: 'restarted', tools_revision: 4 },
  ]);
  expect(short(turn.steps)).toEqual(['add:done', '[lost]']);
});

test('a ReACT turn is thoughts, actions and observations', () => {
  const turn = play([
    { ...started, strategy: 'react' } as TurnEvent,
    think('I '),
    think('add'),
    { type: 'thought', text: 'I add' },
    { type: 'tool_call_begun', index: 0, name: 'add' },
    { type: 'tool_call', id: 'a', name: 'add', arguments: {} },
    { type: 'action', id: 'a', name: 'add', arguments: {} },
    { type: 'tool_result', id: 'a', name: 'add', is_error: false, content: [{ type: 'text', text: '3' }] },
    { type: 'observation', id: 'a', is_error: false, text: '{"sum":3}' },
    { type: 'observation', is_error: true, text: 'name one tool' },
    { ...started, strategy: 'react' } as TurnEvent,
    say('3'),
    { type: 'answer', text: '3' },
  ]);
  expect(turn.strategy).toBe('react');
  expect(short(turn.steps)).toEqual(['Thought: I add', 'add:done', 'name one tool', '3']);
  expect(turn.steps[1]).toMatchObject({ observation: '{"sum":3}' });
});

test('the end tells how it ended, and leaves no call running', () => {
  const cancelled: TurnEvent = { ...done, status: 'cancelled' };
  const running = play([started, { type: 'tool_call', id: 'a', name: 'wait', arguments: {} }]);
  expect(isOver(running)).toBe(false);
  const turn = play([cancelled], running);
  expect([turn.phase, ...short(turn.steps)]).toEqual(['cancelled', 'wait:abandoned']);
  const failed = play([started, { type: 'error', error: problem }, { ...done, status: 'failed' }]);
  expect(failed).toMatchObject({ phase: 'failed', error: { message: 'too busy' }, usage });
});
