import { expect, test } from 'vitest';
import { type Entry, matching, recentFirst, remember } from './palette-entries';

const entry = (label: string, about = '', kind = 'Tool'): Entry => ({ to: `/tools/${label}`, label, kind, about });
const entries = [
  entry('demo.echo', 'Sends text back'),
  entry('echo'),
  entry('demo.wait', 'Waits, then echoes'),
  entry('files.read'),
];
const found = (text: string) => matching(entries, text).shown.map(({ label }) => label);

test('names come before descriptions, exact ones first, and every word must match', () => {
  expect(found('echo')).toEqual(['echo', 'demo.echo', 'demo.wait']);
  expect(found('demo echo')).toEqual(['demo.echo', 'demo.wait']);
  expect(found('nothing')).toEqual([]);
});

test('of many, the first are shown and all are counted', () => {
  const many = Array.from({ length: 5000 }, (_, index) => entry(`server.tool_${index}`));
  const { shown, total } = matching(many, 'tool');
  expect([shown.length, total]).toEqual([30, 5000]);
});

test('what was opened last comes first', () => {
  remember(entries[3]);
  remember(entries[1]);
  expect(recentFirst(entries).map(({ label }) => label)).toEqual(['echo', 'files.read', 'demo.echo', 'demo.wait']);
});
