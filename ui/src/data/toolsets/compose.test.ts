import { expect, test } from 'vitest';
import { costed, entryOf, estimate, faultsOf, matchingTools, total } from './compose';

const tool = (name: string, description = '') => {
  const [server, bare] = name.split('.');
  return { name, server, tool: bare, description, input_schema: {} as never };
};
const tools = [tool('a.get_price', 'What it costs'), tool('a.list'), tool('b.get_time')];
const set = (name: string, members: string[]) => ({
  name,
  description: `The ${name}`,
  tools: members.length,
  when_to_use: null,
  members,
});

test('a toolset costs what its tools cost', () => {
  const costs = new Map(tools.map((each) => [each.name, estimate(each)]));
  const [first] = costed([set('prices', ['a.get_price', 'gone.x'])], costs, '');
  expect(first.cost).toBe(estimate(tools[0]));
  expect(total(costs.keys(), costs)).toBeGreaterThan(first.cost);
});

test('toolsets and tools are found by every word, in names, descriptions and members', () => {
  const sets = [set('prices', ['a.get_price']), set('times', ['b.get_time'])];
  const found = (text: string) => costed(sets, new Map(), text).map(({ name }) => name);
  expect([found('get'), found('get_time'), found('THE prices'), found('x')]).toEqual([
    ['prices', 'times'],
    ['times'],
    ['prices'],
    [],
  ]);
  expect(matchingTools(tools, 'a. costs').map(({ name }) => name)).toEqual(['a.get_price']);
});

test('faults stand at their field', () => {
  const fields = { name: 'x', description: 'd', when_to_use: '' };
  expect(faultsOf(fields, [])).toEqual({});
  expect(faultsOf({ ...fields, name: ' ' }, [])).toHaveProperty('name');
  expect(faultsOf({ ...fields, name: 'two words' }, [])).toHaveProperty('name');
  expect(faultsOf(fields, ['x']).name).toMatch(/already/);
  expect(faultsOf({ ...fields, description: '' }, [])).toHaveProperty('description');
});

test('the entry has what is filled in', () => {
  const fields = { name: ' prices ', description: 'Prices of shares', when_to_use: ' ' };
  expect(entryOf(fields, { tools: ['a.get_price', 'b.*'], servers: [] })).toEqual({
    name: 'prices',
    description: 'Prices of shares',
    tools: ['a.get_price', 'b.*'],
  });
  expect(entryOf({ ...fields, when_to_use: 'Somebody asks' }, { tools: [], servers: ['a'] })).toEqual({
    name: 'prices',
    description: 'Prices of shares',
    when_to_use: 'Somebody asks',
    servers: ['a'],
  });
});
