import { expect, test } from 'vitest';
import { choicesOf, kindOf } from './schema';

test('values to choose from have their titles, however a schema writes them', () => {
  const titled = [
    { value: 'r', title: 'Red' },
    { value: 'g', title: 'Green' },
  ];
  for (const schema of [
    { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
    {
      type: 'string',
      oneOf: [
        { const: 'r', title: 'Red' },
        { const: 'g', title: 'Green' },
      ],
    },
    {
      anyOf: [
        { const: 'r', title: 'Red' },
        { const: 'g', title: 'Green' },
      ],
    },
  ]) {
    expect(choicesOf(schema)).toEqual(titled);
    expect(kindOf(schema, schema, 0)).toBe('enum');
  }
  expect(choicesOf({ enum: ['r', null] })).toEqual([{ value: 'r' }, { value: null }]);
  const mixed = { anyOf: [{ const: 'r' }, { type: 'number' }] };
  expect(choicesOf(mixed)).toEqual([]);
  expect(kindOf(mixed, mixed, 0)).toBe('choice');
  expect(kindOf({ type: 'string' }, {}, 0)).toBe('string');
});
