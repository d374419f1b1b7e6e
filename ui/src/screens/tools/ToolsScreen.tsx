import { Code, Group, NativeSelect, Text } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo } from 'react';
import type { ToolList } from '../../api/types';
import { Page } from '../../components/Page';
import { useSearch } from '../../components/search-params';
import { SearchField } from '../../components/SearchField';
import { Empty, QueryState } from '../../components/states';
import { useNow } from '../../components/time';
import { useActivity } from '../../data/activity';
import { useLoad } from '../../data/load';
import { allToolsQuery, useToolsets } from '../../data/queries';
import { filtered, rowsOf } from './listed';
import { ToolTable } from './ToolTable';

function Tools({ list }: { list: ToolList }) {
  const [search, setSearch] = useSearch();
  const toolsets = useToolsets().data;
  const activity = useActivity();
  const slots = useLoad().data?.slots;
  const waiting = useMemo(() => new Map(slots?.map(({ tool, waiting }) => [tool, waiting])), [slots]);
  const now = Math.floor(useNow() / 10_000) * 10_000 + 10_000;
  const rows = useMemo(() => rowsOf(list), [list]);
  const get = (name: string) => search.get(name) ?? '';
  const filters = { text: get('q'), server: get('server'), toolset: get('toolset'), state: get('state') };
  const text = useDeferredValue(filters.text);
  const shown = useMemo(
    () => filtered(rows, { text, server: filters.server, toolset: filters.toolset, state: filters.state }, toolsets),
    [rows, text, filters.server, filters.toolset, filters.state, toolsets],
  );
  const set = (name: string, value: string) =>
    setSearch(
      (before) => {
        if (value === '') before.delete(name);
        else before.set(name, value);
        return before;
      },
      { replace: true },
    );
  const hidden = rows.filter(({ state }) => state === 'hidden').length;
  const servers = [...new Set(rows.map(({ server }) => server))].sort();
  return (
    <>
      <Group gap="xs" align="flex-end">
        <SearchField
          className="grow"
          miw={200}
          label="Search"
          placeholder="Name, description, argument"
          leftSection={<IconSearch size={16} />}
          value={filters.text}
          onChange={(text) => set('q', text)}
        />
        <NativeSelect
          label="Server"
          data={[{ value: '', label: 'All' }, ...servers]}
          value={filters.server}
          onChange={(event) => set('server', event.currentTarget.value)}
        />
        <NativeSelect
          label="Toolset"
          data={[{ value: '', label: 'All' }, ...(toolsets?.toolsets ?? []).map(({ name }) => name)]}
          value={filters.toolset}
          onChange={(event) => set('toolset', event.currentTarget.value)}
        />
        <NativeSelect
          label="State"
          data={[{ value: '', label: 'All' }, 'available', 'away', 'hidden']}
          value={filters.state}
          onChange={(event) => set('state', event.currentTarget.value)}
        />
      </Group>
      <Text size="sm" c="dimmed" role="status">
        {shown.length === rows.length
          ? `${rows.length - hidden} tools${hidden === 0 ? '' : `, ${hidden} hidden`}`
          : `${shown.length} of ${rows.length} tools match`}{' '}
        at revision {list.revision}
      </Text>
      {rows.length === 0 ? (
        <Empty title="There are no tools yet" command="switchboard --config FILE server set NAME --tool-url URL">
          Tools come from MCP servers. Add one on the Servers screen, in the configuration, or on the command line.
        </Empty>
      ) : shown.length === 0 ? (
        <Empty title="No tool matches">
          Search for fewer words, or set the filters to <Code>All</Code>.
        </Empty>
      ) : (
        <ToolTable rows={shown} activity={activity} waiting={waiting} now={now} />
      )}
    </>
  );
}

export function ToolsScreen() {
  const query = useQuery(allToolsQuery);
  return (
    <Page title="Tools" about="Every tool of every server, with its use">
      <QueryState query={query}>{(list) => <Tools list={list} />}</QueryState>
    </Page>
  );
}
