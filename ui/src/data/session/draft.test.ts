import { expect, test } from 'vitest';
import { bind, countOf, isEmpty, matchingRows, stagedState, switchToolset, switchTools, toolRows } from './draft';

function standing(name: string, enabled: boolean, reason: string, toolsets: string[] = [], not_for: string[] = []) {
  const [server, tool] = name.split('.');
  const names = { name: name.replace('.', '__'), canonical_name: name, server, tool };
  return { ...names, description: `does ${tool}`, available: true, enabled, because: { reason, toolsets, not_for } };
}

const rows = toolRows(
  [
    standing('a.on', true, 'toolset', ['a'], ['gemini']),
    standing('a.off', false, 'tool'),
    standing('a.own', true, 'tool'),
    standing('a.set', false, 'default', ['extra']),
    standing('b.far', false, 'binding'),
    standing('a.slow', false, 'toolset', ['slow']),
    standing('a.hidden', false, 'policy'),
    standing('mine.x', true, 'default'),
  ],
  { 'a.off': false, 'a.own': true },
);

test('every tool has its state and the reason for it', () => {
  expect(rows.map(({ canonical, enabled, because }) => [canonical, enabled, because])).toEqual([
    ['a.on', true, 'in a, not for gemini'],
    ['a.off', false, 'switched off here'],
    ['a.own', true, 'switched on here'],
    ['a.set', false, 'not shown at first; extra would add it'],
    ['b.far', false, 'the session is not bound to b'],
    ['a.slow', false, 'off with slow'],
    ['a.hidden', false, 'hidden by the configuration'],
    ['mine.x', true, 'shown to every session'],
  ]);
});

test('a switch back to what is in force is no change', () => {
  const off = switchToolset({}, 'a', false, true);
  expect(off).toEqual({ toolsets: { a: false } });
  expect(switchToolset(off, 'a', true, true)).toEqual({});
  const on = switchTools({}, [rows[1], rows[3]], true);
  expect(on).toEqual({ tools: { 'a.off': true, 'a.set': true } });
  expect([countOf(on), stagedState(rows[1], on), stagedState(rows[0], on)]).toEqual([2, true, true]);
  expect(isEmpty(switchTools(on, [rows[1], rows[3]], false))).toBe(true);
});

test('only a tool with a switch of its own can be left to its toolsets', () => {
  expect(switchTools({}, rows.slice(0, 3), null)).toEqual({ tools: { 'a.off': null, 'a.own': null } });
});

test('bound servers are compared as a set', () => {
  expect(bind({}, ['b', 'a'], ['a', 'b'])).toEqual({});
  expect(bind({}, null, ['a'])).toEqual({ servers: null });
  expect(bind({ servers: null }, ['a'], ['a'])).toEqual({});
  expect(bind({}, ['a'], null)).toEqual({ servers: ['a'] });
});

test('search is over names and descriptions, with server and state', () => {
  const found = (text: string, server = '', state = '') =>
    matchingRows(rows, { text, server, state }).map(({ canonical }) => canonical);
  expect(found('does o')).toHaveLength(8);
  expect(found('OFF')).toEqual(['a.off']);
  expect(found('', 'a', 'off')).toEqual(['a.off', 'a.set', 'a.slow', 'a.hidden']);
  expect(found('', '', 'switched')).toEqual(['a.off', 'a.own']);
});
