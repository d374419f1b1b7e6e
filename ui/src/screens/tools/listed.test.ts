import { expect, test } from 'vitest';
import type { ToolList } from '../../api/types';
import { filtered, rowsOf } from './listed';

const tool = (name: string, more: object = {}) => ({
  name,
  server: name.split('.')[0],
  tool: name.split('.')[1],
  title: null,
  description: null,
  available: true,
  toolset: null,
  input_schema: { properties: {} },
  ...more,
});
const list = {
  revision: 1,
  tools: [
    tool('shop.buy', { description: 'Orders an article' }),
    tool('shop.find', { input_schema: { properties: { article_number: {} } } }),
    tool('wiki.read', { available: false }),
    tool('wiki.drop'),
  ],
  hidden: [
    {
      name: 'wiki.drop',
      server: 'wiki',
      tool: 'drop',
      title: null,
      description: null,
      reason: 'denied',
      by: 'the deny list',
      hint: 'Edit it',
    },
    {
      name: 'wiki.off',
      server: 'wiki',
      tool: 'off',
      title: null,
      description: null,
      reason: 'disabled',
      by: 'enabled: false',
      hint: null,
    },
  ],
  quarantined: [{ server: 'wiki', tool: 'bad', reason: 'its schema is not valid' }],
} as unknown as ToolList;

const none = { text: '', server: '', toolset: '', state: '' };
const names = (filters: object) =>
  filtered(
    rowsOf(list),
    { ...none, ...filters },
    {
      exposure: 'static',
      reason: '',
      toolsets: [{ name: 'buying', description: '', tools: 1, when_to_use: null, members: ['shop.buy'] }],
    },
  ).map(({ name }) => name);

test('the search covers names, descriptions and arguments, and needs every word', () => {
  expect(names({ text: 'article' })).toEqual(['shop.buy', 'shop.find']);
  expect(names({ text: 'shop ORDERS' })).toEqual(['shop.buy']);
  expect(names({ text: 'nothing' })).toEqual([]);
});

test('servers, toolsets and states filter together with the search', () => {
  expect(names({ server: 'wiki' })).toEqual(['wiki.read', 'wiki.drop', 'wiki.off', 'wiki.bad']);
  expect(names({ server: 'wiki', state: 'hidden' })).toEqual(['wiki.drop', 'wiki.off', 'wiki.bad']);
  expect(names({ toolset: 'buying' })).toEqual(['shop.buy']);
});

test('what is hidden or away says why', () => {
  const why = Object.fromEntries(rowsOf(list).map(({ name, why }) => [name, why]));
  expect(why['wiki.read']).toBe('wiki is not connected');
  expect(why['wiki.drop']).toBe('the deny list. Edit it');
  expect(why['wiki.off']).toBe('enabled: false');
  expect(why['wiki.bad']).toBe('its schema is not valid');
});
