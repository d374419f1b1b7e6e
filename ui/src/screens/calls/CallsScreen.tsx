import { Anchor, Button, Group, NativeSelect, Stack, Table } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { RecordView } from '../../api/types';
import { Ago } from '../../components/Ago';
import { Page } from '../../components/Page';
import { useSearch } from '../../components/search-params';
import { SearchField } from '../../components/SearchField';
import { StateBadge } from '../../components/StateBadge';
import { Empty, ErrorPanel, Loading } from '../../components/states';
import { bytes, duration } from '../../components/time';
import { useBoardEvents } from '../../data/live';
import { Overview } from './Overview';

const OUTCOMES = [
  'ok',
  'tool_error',
  'unknown_tool',
  'invalid_arguments',
  'queue_timeout',
  'timeout',
  'inactivity_timeout',
  'cancelled',
  'unavailable',
  'upstream_error',
  'blocked',
  'needs_sign_in',
  'rate_limited',
  'internal_error',
];
const PERIODS: [string, string, number][] = [
  ['', 'All times', 0],
  ['5m', 'Last 5 minutes', 300_000],
  ['1h', 'Last hour', 3_600_000],
  ['24h', 'Last day', 86_400_000],
  ['7d', 'Last week', 604_800_000],
];
const PAGE = 100;

/** The period of the filters; all times where it is unknown. */
const periodOf = (filters: Filters) => PERIODS.find(([key]) => key === filters.period) ?? PERIODS[0];

type Filters = Record<'tool' | 'server' | 'session' | 'outcome' | 'period', string>;

function useCalls(filters: Filters) {
  return useInfiniteQuery({
    // The log is refreshed when the reader wants it: rows do not move under the pointer.
    queryKey: ['call-log', filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const [, , period] = periodOf(filters);
      const query = {
        limit: PAGE,
        tool: filters.tool || undefined,
        server: filters.server || undefined,
        session: filters.session || undefined,
        outcome: (filters.outcome || undefined) as 'ok' | undefined,
        since: period === 0 ? undefined : new Date(Date.now() - period).toISOString(),
        before: pageParam,
      };
      return unwrap(client.GET('/api/v1/calls', { params: { query }, signal }));
    },
    getNextPageParam: ({ calls }) => (calls.length < PAGE ? undefined : calls.at(-1)?.id),
  });
}

function Log({ calls }: { calls: RecordView[] }) {
  return (
    <div className="wide-table" tabIndex={0} role="region" aria-label="Calls">
      <Table fz="sm" highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {['When', 'Tool', 'Outcome', 'Ran', 'Waited', 'Result', 'From'].map((title) => (
              <Table.Th key={title}>{title}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {calls.map((call) => (
            <Table.Tr key={call.id} data-record={call.id}>
              <Table.Td style={{ whiteSpace: 'nowrap' }}>
                <Anchor component={Link} to={`/calls/${call.id}`} inherit>
                  <Ago at={call.started_at} inherit />
                </Anchor>
              </Table.Td>
              <Table.Td className="mono">{call.tool ?? call.requested}</Table.Td>
              <Table.Td>
                <StateBadge state={call.outcome} />
              </Table.Td>
              <Table.Td>{duration(call.run_ms)}</Table.Td>
              <Table.Td>{call.wait_ms < 1 ? '' : duration(call.wait_ms)}</Table.Td>
              <Table.Td>{bytes(call.result_bytes)}</Table.Td>
              <Table.Td>
                {call.face}
                {call.client !== null && ` · ${call.client}`}
                {call.principal !== null && call.principal !== 'local' && ` · ${call.principal}`}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

export function CallsScreen() {
  const [search, setSearch] = useSearch();
  const get = (name: string) => search.get(name) ?? '';
  const filters: Filters = {
    tool: get('tool'),
    server: get('server'),
    session: get('session'),
    outcome: get('outcome'),
    period: get('period'),
  };
  const period = periodOf(filters);
  const query = useCalls(filters);
  const [news, setNews] = useState(0);
  const calls = query.data?.pages.flatMap((page) => page.calls) ?? [];
  useBoardEvents(['call_ended'], ({ data }) => {
    const { tool, server, session, outcome } = data as unknown as RecordView;
    const fits = (wanted: string, actual: string | null) => wanted === '' || wanted === actual;
    const isHere = fits(filters.server, server) && fits(filters.session, session) && fits(filters.outcome, outcome);
    if (isHere && (fits(filters.tool, tool) || tool?.endsWith(`.${filters.tool}`))) setNews((before) => before + 1);
  });
  const set = (name: string, value: string) =>
    setSearch(
      (before) => {
        if (value === '') before.delete(name);
        else before.set(name, value);
        return before;
      },
      { replace: true },
    );
  const refresh = () => {
    setNews(0);
    void query.refetch();
  };
  return (
    <Page
      title="Calls"
      about="What was called, how it ended, and how long it took. Records hold a digest of the arguments, not the arguments"
    >
      <Overview
        period={{ ms: period[2], label: period[1] }}
        tool={filters.tool}
        server={filters.server}
        by={get('by')}
        onBy={(by) => set('by', by)}
      />
      <Group gap="xs" align="flex-end">
        <SearchField
          label="Tool"
          placeholder="server.tool"
          value={filters.tool}
          onChange={(text) => set('tool', text)}
        />
        <SearchField label="Server" value={filters.server} onChange={(text) => set('server', text)} w={130} />
        <SearchField label="Session" value={filters.session} onChange={(text) => set('session', text)} w={150} />
        <NativeSelect
          label="Outcome"
          data={[
            { value: '', label: 'All' },
            ...OUTCOMES.map((outcome) => ({ value: outcome, label: outcome.replaceAll('_', ' ') })),
          ]}
          value={filters.outcome}
          onChange={(event) => set('outcome', event.currentTarget.value)}
        />
        <NativeSelect
          label="Period"
          data={PERIODS.map(([value, label]) => ({ value, label }))}
          value={filters.period}
          onChange={(event) => set('period', event.currentTarget.value)}
        />
        <Button variant={news > 0 ? 'filled' : 'default'} onClick={refresh} loading={query.isRefetching}>
          {news > 0 ? `Show ${news} new` : 'Refresh'}
        </Button>
      </Group>
      {query.isError && <ErrorPanel error={query.error} onRetry={refresh} />}
      {query.isPending && <Loading />}
      {query.isSuccess && calls.length === 0 && (
        <Empty
          title="No calls match"
          action={
            <Anchor component={Link} to="/tools">
              Try a tool
            </Anchor>
          }
        >
          Calls of every kind of client are recorded here when they end.
        </Empty>
      )}
      {calls.length > 0 && (
        <Stack gap="xs">
          <Log calls={calls} />
          {query.hasNextPage && (
            <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
              Load older ones
            </Button>
          )}
        </Stack>
      )}
    </Page>
  );
}
