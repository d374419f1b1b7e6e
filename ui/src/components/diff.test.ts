import { expect, test } from 'vitest';
import { diffLines, hunks } from './diff';

const MARKS = { same: ' ', added: '+', removed: '-' };
const shown = (before: string, after: string) => diffLines(before, after).map(({ kind, text }) => MARKS[kind] + text);

test.each([
  ['equal texts', 'a\nb', 'a\nb', [' a', ' b']],
  ['a line more', 'a\nc', 'a\nb\nc', [' a', '+b', ' c']],
  ['a line less', 'a\nb\nc', 'a\nc', [' a', '-b', ' c']],
  ['another line', 'a\nb\nc', 'a\nx\nc', [' a', '-b', '+x', ' c']],
  ['a text that begins', '', 'a', ['+a']],
  ['a text that ends', 'a', '', ['-a']],
  ['what moved is kept once', 'a\nb\nc\nd', 'c\nd\na\nb', ['-a', '-b', ' c', ' d', '+a', '+b']],
  ['as many lines as possible are kept', 'b\nc\ny\na', 'a\nx\nb\nc', ['+a', '+x', ' b', ' c', '-y', '-a']],
  ['repeated lines', '{\n}\n{\n}', '{\n}', [' {', ' }', '-{', '-}']],
])('%s', (_, before, after, expected) => {
  expect(shown(before, after)).toEqual(expected);
});

test('both texts can be read out of the difference', () => {
  let seed = 7;
  const next = () => (seed = (seed * 1103515245 + 12345) % 2147483648);
  const text = () => Array.from({ length: 1 + (next() % 40) }, () => 'abcdef'[next() % 6]).join('\n');
  for (let round = 0; round < 200; round += 1) {
    const [a, b] = [text(), text()];
    const lines = diffLines(a, b);
    const of = (kind: string) =>
      lines.flatMap((line) => (line.kind === kind || line.kind === 'same' ? [line.text] : []));
    expect(of('removed').join('\n')).toBe(a);
    expect(of('added').join('\n')).toBe(b);
  }
});

test('far lines are left out', () => {
  const before = Array.from({ length: 20 }, (_, index) => String(index)).join('\n');
  const lines = hunks(diffLines(before, before.replace('10', 'ten')), 1);
  expect(lines.map((line) => (line === undefined ? '…' : MARKS[line.kind] + line.text))).toEqual([
    '…',
    ' 9',
    '-10',
    '+ten',
    ' 11',
    '…',
  ]);
});
