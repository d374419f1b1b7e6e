import { expect, test } from 'vitest';
import {
  bind,
  countOf,
  isEmpty,
  matchingRows,
  stagedState,
  standingRows,
  switchToolset,
  switchTools,
  toolRows,
} from './draft';

const tool = (name: string, available = true) => {
  const [server, bare] = name.split('.');
  return { name, server, tool: bare, description: `does ${bare}`, available };
};
const seen = (name: string) => ({ ...tool(name), name: name.replace('.', '__'), canonical_name: name });
const known = {
  session: { tools: { 'a.off': false, 'a.own': true }, servers: ['a', 'mine'], disabled_toolsets: ['slow'] },
  tools: [seen('a.on'), seen('a.own'), seen('mine.x')],
  catalog: ['a.on', 'a.off', 'a.own', 'a.set', 'b.far', 'a.slow'].map((name) => tool(name)),
  toolsets: [
    { name: 'a', enabled: true },
    { name: 'extra', enabled: false },
    { name: 'slow', enabled: false },
  ],
  members: [
    { name: 'a', members: ['a.on', 'a.off', 'a.slow'] },
    { name: 'slow', members: ['a.slow'] },
    { name: 'extra', members: ['a.set'] },
  ],
};
const rows = toolRows(known);

test('every tool has its state and the reason for it', () => {
  expect(rows.map(({ canonical, enabled, because }) => [canonical, enabled, because])).toEqual([
    ['a.on', true, 'in a'],
    ['a.off', false, 'switched off here'],
    ['a.own', true, 'switched on here'],
    ['a.set', false, 'off with extra'],
    ['b.far', false, 'the session is not bound to b'],
    ['a.slow', false, 'off with slow'],
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
  expect(found('does o')).toEqual(['a.on', 'a.off', 'a.own', 'a.set', 'b.far', 'a.slow', 'mine.x']);
  expect(found('OFF')).toEqual(['a.off']);
  expect(found('', 'a', 'off')).toEqual(['a.off', 'a.set', 'a.slow']);
  expect(found('', '', 'switched')).toEqual(['a.off', 'a.own']);
});

test('a board that says what decided a tool is believed', () => {
  const standing = (
    name: string,
    enabled: boolean,
    reason: string,
    toolsets: string[] = [],
    not_for: string[] = [],
  ) => ({
    ...seen(name),
    enabled,
    because: { reason, toolsets, not_for },
  });
  const tools = [
    standing('a.on', true, 'toolset', ['a'], ['gemini']),
    standing('a.off', false, 'tool'),
    standing('a.set', false, 'default', ['extra']),
    standing('b.far', false, 'binding'),
    standing('a.hidden', false, 'policy'),
  ];
  expect(standingRows(tools, { 'a.off': false })?.map(({ because, own }) => [because, own])).toEqual([
    ['in a, not for gemini', undefined],
    ['switched off here', false],
    ['not shown at first; extra would add it', undefined],
    ['the session is not bound to b', undefined],
    ['hidden by the configuration', undefined],
  ]);
  expect(standingRows([seen('a.on')], {})).toBeUndefined();
});
