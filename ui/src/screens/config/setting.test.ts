import { expect, test } from 'vitest';
import { shortPlace } from '../../components/Place';
import { settingsOf } from './setting';

test('entries of lists are called by their names', () => {
  const values = [
    { pointer: '/switchboard/toolbox/mcps/0/name', value: 'demo' },
    { pointer: '/switchboard/toolbox/mcps/0/args/1', value: '--stdio' },
    { pointer: '/switchboard/gateway/allow/2', value: 'x' },
    { pointer: '/switchboard/agents/a~1b/name', value: 'c' },
  ];
  expect([...settingsOf(values).values()]).toEqual([
    'toolbox.mcps[demo].name',
    'toolbox.mcps[demo].args[1]',
    'gateway.allow[2]',
    'agents.a/b.name',
  ]);
});

test('a place is shown without its directories', () => {
  expect(shortPlace('/etc/board/main.yaml:3:14 (defaults of demo)')).toBe('main.yaml:3:14 (defaults of demo)');
  expect(shortPlace('environment SWITCHBOARD_X/Y')).toBe('environment SWITCHBOARD_X/Y');
  expect(shortPlace('default')).toBe('default');
});
