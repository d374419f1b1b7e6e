import { Checkbox, Group, Stack, Switch, Text } from '@mantine/core';
import { QueryState } from '../../components/states';
import type { SessionView } from '../../data/chat/queries';
import { useServers } from '../../data/queries';
import { bind } from '../../data/session/draft';
import type { StagedChange } from './use-session-draft';

const LOCAL = 'local';

/** Which servers the session sees: all, or those that are ticked. */
export function ServerBindings({ session, change }: { session: SessionView; change: StagedChange }) {
  const servers = useServers();
  const staged = change.draft.servers === undefined ? (session.servers ?? null) : change.draft.servers;
  const set = (next: string[] | null) => change.edit((draft) => bind(draft, next, session.servers));
  return (
    <QueryState query={servers}>
      {(data) => {
        const names = [...data.servers.map(({ name }) => name), LOCAL];
        const missing = (session.servers ?? []).filter((name) => !names.includes(name));
        const all = [...names, ...missing];
        return (
          <Stack gap="xs">
            <Switch
              label="All servers, also those that are added later"
              checked={staged === null}
              onChange={(event) => set(event.currentTarget.checked ? null : all)}
            />
            {staged !== null && (
              <Checkbox.Group
                label="Bound to"
                value={staged}
                onChange={set}
                description={staged.length === 0 ? 'Bound to none: the session sees no tools.' : undefined}
              >
                <Group gap="md" mt={4}>
                  {all.map((name) => {
                    const server = data.servers.find((each) => each.name === name);
                    const state = server && server.state !== 'ready' ? ` (${server.state})` : '';
                    return <Checkbox key={name} value={name} label={`${name}${state}`} />;
                  })}
                </Group>
              </Checkbox.Group>
            )}
            {missing.length > 0 && (
              <Text size="xs" c="dimmed">
                Not configured any more: {missing.join(', ')}
              </Text>
            )}
          </Stack>
        );
      }}
    </QueryState>
  );
}
