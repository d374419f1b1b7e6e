import { expect, test } from 'vitest';
import { declarationOf, matchingRows, type Rendering, rowsOf } from './renderings';

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

test('a declaration is found in the shape of each provider', () => {
  const plain = { name: 'a', input_schema: {} };
  expect(declarationOf([{ name: 'b' }, plain], 'a')).toBe(plain);
  const chat = { type: 'function', function: { name: 'a' } };
  expect(declarationOf([chat], 'a')).toBe(chat);
  const inner = { name: 'a', parametersJsonSchema: {} };
  expect(declarationOf([{ functionDeclarations: [{ name: 'b' }, inner] }], 'a')).toBe(inner);
  expect(declarationOf([plain, null, 3], 'c')).toBeUndefined();
});

test('the providers stand side by side, with what one does not get', () => {
  const rows = rowsOf([
    rendering('openai', { explained: [{ name: 'a', tokens: 5, rewrites: [rewrite], declaration: { n: 1 } }] }),
    rendering('gemini', {
      explained: [{ name: 'a', tokens: 9, rewrites: [], declaration: { name: 'a' } }],
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
