import { expect, test } from 'vitest';
import { entryOf, entryShown, fieldsOf, isServerFields, keptFields, type ServerDeclaration } from './server-fields';

const declared: ServerDeclaration = {
  url: 'https://example.com/mcp',
  auth: { bearer: '***' },
  mode: 'strict',
  default_tool_config: { max_instances: 2, timeout: '5s' },
  tool_denylist: ['drop_*'],
  era: 'auto',
} as ServerDeclaration;

test('fields that were not touched make the entry that was there', () => {
  expect(entryOf(fieldsOf('a', declared), declared)).toEqual(declared);
  expect(entryOf({ ...fieldsOf('new', undefined), url: ' http://h/mcp ' }, undefined)).toEqual({
    url: 'http://h/mcp',
    mode: 'dynamic',
    required: false,
    default_tool_config: { max_instances: 5 },
  });
});

test('a changed field changes its member and no other', () => {
  const fields = { ...fieldsOf('a', declared), instances: 9, deny: '', allow: 'get_*, list', required: true };
  expect(entryOf(fields, declared)).toEqual({
    ...declared,
    tool_denylist: undefined,
    tool_allowlist: ['get_*', 'list'],
    required: true,
    default_tool_config: { max_instances: 9, timeout: '5s' },
  });
});

test('neither the tab nor the screen has secrets', () => {
  const fields = { ...fieldsOf('a', declared), token: 'sk-secret', url: 'https://me:pw@example.com/mcp?key=abc' };
  const kept = keptFields(fields);
  expect(isServerFields(kept)).toBe(true);
  const shown = entryShown('a', entryOf(fields, declared), fields.token);
  for (const text of [JSON.stringify(kept), JSON.stringify(shown)]) expect(text).not.toMatch(/sk-secret|pw|abc/);
  expect(JSON.stringify(shown)).toContain('*** (new)');
});
