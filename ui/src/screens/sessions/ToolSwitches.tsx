import { Button, Group, Select, Text } from '@mantine/core';
import { useMemo } from 'react';
import { useSearch } from '../../components/search-params';
import { SearchField } from '../../components/SearchField';
import { Empty, QueryState } from '../../components/states';
import type { SessionView } from '../../data/chat/queries';
import { matchingRows, switchTools, type ToolRow, toolRows } from '../../data/session/draft';
import { useAllSessionTools } from '../../data/session/queries';
import { ToolSwitchList } from './ToolSwitchList';
import type { StagedChange } from './use-session-draft';

/** Every tool that the session could have, with its switch; those that match can be switched together. */
export function ToolSwitches({ session, change }: { session: SessionView; change: StagedChange }) {
  const tools = useAllSessionTools(session.id);
  const [search, setSearch] = useSearch();
  const filter = { text: search.get('q') ?? '', server: search.get('server') ?? '', state: search.get('state') ?? '' };
  const set = (name: string, value: string) =>
    setSearch(
      (old) => {
        if (value === '') old.delete(name);
        else old.set(name, value);
        return old;
      },
      { replace: true },
    );
  const rows = useMemo(() => toolRows(tools.data?.tools ?? [], session.tools), [tools.data, session.tools]);
  const found = useMemo(
    () => matchingRows(rows, { text: filter.text, server: filter.server, state: filter.state }),
    [rows, filter.text, filter.server, filter.state],
  );
  const servers = useMemo(() => [...new Set(rows.map(({ server }) => server))].sort(), [rows]);
  const on = rows.filter(({ enabled }) => enabled).length;
  return (
    <QueryState query={tools}>
      {() => (
        <>
          <Group gap="xs" mb="xs" align="flex-end">
            <SearchField
              size="xs"
              label="Search"
              placeholder="Name or description"
              value={filter.text}
              onChange={(value) => set('q', value)}
              style={{ flex: '1 1 180px' }}
            />
            <Select
              size="xs"
              label="Server"
              data={[{ value: '', label: 'all' }, ...servers]}
              value={filter.server}
              onChange={(value) => set('server', value ?? '')}
              allowDeselect={false}
              w={140}
            />
            <Select
              size="xs"
              label="State"
              data={[
                { value: '', label: 'on and off' },
                { value: 'on', label: 'on' },
                { value: 'off', label: 'off' },
                { value: 'switched', label: 'with a switch of its own' },
              ]}
              value={filter.state}
              onChange={(value) => set('state', value ?? '')}
              allowDeselect={false}
              w={170}
            />
          </Group>
          <Bulk found={found} change={change} />
          <Text size="sm" role="status" mb={4}>
            {found.length} of {rows.length} match; {on} are on
          </Text>
          {found.length === 0 ? (
            <Empty title={rows.length === 0 ? 'This session sees no tools' : 'No tool matches'} />
          ) : (
            <ToolSwitchList rows={found} change={change} />
          )}
        </>
      )}
    </QueryState>
  );
}

function Bulk({ found, change }: { found: ToolRow[]; change: StagedChange }) {
  const to = (value: boolean | null) => change.edit((draft) => switchTools(draft, found, value));
  const own = found.filter((row) => row.own !== undefined).length;
  return (
    <Group gap="xs" mb="xs">
      <Button size="compact-xs" variant="default" disabled={found.length === 0} onClick={() => to(true)}>
        Switch on all {found.length} that match
      </Button>
      <Button size="compact-xs" variant="default" disabled={found.length === 0} onClick={() => to(false)}>
        Switch off all {found.length} that match
      </Button>
      {own > 0 && (
        <Button size="compact-xs" variant="default" onClick={() => to(null)}>
          Leave {own} to their toolsets
        </Button>
      )}
    </Group>
  );
}
