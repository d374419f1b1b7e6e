import { expect, test } from 'vitest';
import { argumentOf, declarationOf, faults, moved, rowOf, rowOfServer, undeclared } from './argument-rows';

test('a declaration comes back from its rows as it was', () => {
  const declared = {
    description: 'Orders',
    limits: { timeout: '5s' },
    arguments: [
      { name: 'article', type: 'string', description: 'Which', required: true, enum: ['a', 'b'] },
      { name: 'count', type: 'integer', default: 1 },
      { name: 'shop', type: 'string', value: 'north', hidden: true },
      { name: 'lines', type: 'array', items: { type: 'string' } },
    ],
  };
  expect(
    declarationOf(
      declared as never,
      declared.arguments.map((each) => rowOf(each as never)),
      'Orders',
    ),
  ).toEqual(declared);
});

test('texts that are not JSON are texts, and choices may be separated by commas', () => {
  const row = { ...rowOf({ name: 'color' }), type: 'string', enumText: 'red, green', defaultText: 'red' };
  expect(argumentOf(row)).toEqual({ name: 'color', type: 'string', enum: ['red', 'green'], default: 'red' });
  expect(argumentOf({ ...row, enumText: '[1, 2]', defaultText: '0' })).toMatchObject({ enum: [1, 2], default: 0 });
});

test('empty and equal names are faults before anything is sent', () => {
  const rows = ['a', '', 'a'].map((name) => rowOf({ name }));
  expect([...faults(rows)]).toEqual([
    [1, 'An argument needs a name'],
    [2, '“a” is declared twice'],
  ]);
});

test('rows move within the list and not out of it', () => {
  expect(moved(['a', 'b', 'c'], 0, 1)).toEqual(['b', 'a', 'c']);
  expect(moved(['a', 'b', 'c'], 2, 3)).toEqual(['a', 'b', 'c']);
});

test('arguments of the server that are not declared can be taken over', () => {
  const schema = { properties: { a: { type: 'string', description: 'A' }, b: {} } };
  expect(undeclared(schema, [rowOf({ name: 'b' })]).map(([name]) => name)).toEqual(['a']);
  expect(argumentOf(rowOfServer('a', schema.properties.a))).toEqual({ name: 'a', type: 'string', description: 'A' });
});
