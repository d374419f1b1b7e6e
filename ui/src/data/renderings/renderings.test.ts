import { expect, test } from 'vitest';
import { matchingRows, type Rendering, rowsOf } from './renderings';

const cost = { total: 10, basis: { tokenizer: 't', precision: 'estimate', note: '' } };
const rendering = (provider: string, more: Partial<Rendering>): Rendering => ({
  provider,
  tools_revision: 1,
  count: 0,
  tokens: cost,
  quarantined: [],
  left_out: [],
  ...more,
});
const rewrite = { path: '/properties/x', what: 'renamed', reason: 'refused' };

test('the providers stand side by side, with what one does not get', () => {
  const rows = rowsOf([
    rendering('openai', {
      explained: [{ name: 'a', tokens: 5, rewrites: [rewrite], declaration: { n: 1 } as never, canonical_name: null }],
    }),
    rendering('gemini', {
      explained: [{ name: 'a', tokens: 9, rewrites: [], declaration: { name: 'a' } as never, canonical_name: null }],
      quarantined: [{ name: 'b', reason: 'no object' }],
      left_out: [{ name: 'c', reason: 'no room' }],
    }),
  ]);
  expect(rows).toEqual([
    {
      name: 'a',
      most: 9,
      missing: {},
      cells: {
        openai: { tokens: 5, rewrites: [rewrite], declaration: { n: 1 } },
        gemini: { tokens: 9, rewrites: [], declaration: { name: 'a' } },
      },
    },
    { name: 'b', most: 0, cells: {}, missing: { gemini: { kind: 'quarantined', reason: 'no object' } } },
    { name: 'c', most: 0, cells: {}, missing: { gemini: { kind: 'left out', reason: 'no room' } } },
  ]);
  const names = (text: string, only = '') => matchingRows(rows, text, only).map(({ name }) => name);
  expect([names(''), names('B'), names('', 'rewritten'), names('', 'missing')]).toEqual([
    ['a', 'b', 'c'],
    ['b'],
    ['a'],
    ['b', 'c'],
  ]);
});
