import { expect, test } from 'vitest';
import { scalar, yaml } from './yaml';

const check = (value: unknown, text: string) => expect(yaml(value)).toBe(text);

test('objects, lists and scalars are written as the file has them', () => {
  check(undefined, '');
  check({}, '{}');
  check(
    { name: 'demo.echo', limits: { timeout: '30s', rate: null }, hidden: false, gone: undefined },
    'name: demo.echo\nlimits:\n  timeout: "30s"\n  rate: null\nhidden: false',
  );
  check(
    [{ name: 'a', enum: [1, 2], empty: [] }, 'b', [['deep'], {}]],
    '- name: a\n  enum:\n    - 1\n    - 2\n  empty: []\n- b\n- - - deep\n  - {}',
  );
});

test('texts that YAML would read as something else are quoted', () => {
  for (const text of ['yes', 'NULL', '1', '', '- a', 'a: b', '${TOKEN}', 'a\nb', 'ends ', '#x', '*'])
    expect(scalar(text)).toBe(JSON.stringify(text));
  for (const text of ['plain words', 'demo.echo', 'a/b-c_d']) expect(scalar(text)).toBe(text);
});
