import { Anchor, Button, Group, NativeSelect, Paper, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useSearchParams } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { RecordView } from '../../api/types';
import { Ago } from '../../components/Ago';
import { Page } from '../../components/Page';
import { SearchField } from '../../components/SearchField';
import { StateBadge } from '../../components/StateBadge';
import { Empty, ErrorPanel, Loading } from '../../components/states';
import { bytes, duration, useNow } from '../../components/time';
import { useActivity } from '../../data/activity';
import { useBoardEvents } from '../../data/live';
import { Timeline } from './Timeline';
import { Waiting } from './Waiting';

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

type Filters = Record<'tool' | 'server' | 'session' | 'outcome' | 'period', string>;

function useCalls(filters: Filters) {
  return useInfiniteQuery({
    // The log is refreshed when the reader wants it: rows do not move under the pointer.
    queryKey: ['call-log', filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const period = PERIODS.find(([key]) => key === filters.period)?.[2] ?? 0;
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

/** What the last minutes looked like, from the records that this page has seen. */
function Overview() {
  const activity = useActivity();
  const now = useNow();
  const samples = [...activity.values()].flatMap((each) => each.samples).filter(({ at }) => now - at < 300_000);
  const errors = samples.filter(({ isError }) => isError).length;
  return (
    <SimpleGrid cols={{ base: 1, md: 3 }}>
      <Paper withBorder p="sm">
        <Text size="xs" c="dimmed">
          In flight
        </Text>
        <Waiting />
      </Paper>
      <Paper withBorder p="sm">
        <Text size="xs" c="dimmed">
          Errors in the last five minutes
        </Text>
        <Text size="xl" fw={700}>
          {samples.length === 0 ? '–' : `${((100 * errors) / samples.length).toFixed(1)} %`}
        </Text>
        <Text size="xs" c="dimmed">
          {errors} of {samples.length} calls
        </Text>
      </Paper>
      <Paper withBorder p="sm">
        <Text size="xs" c="dimmed">
          Last five minutes
        </Text>
        <Timeline samples={samples} now={now} />
      </Paper>
    </SimpleGrid>
  );
}

export function CallsScreen() {
  const [search, setSearch] = useSearchParams();
  const get = (name: string) => search.get(name) ?? '';
  const filters: Filters = {
    tool: get('tool'),
    server: get('server'),
    session: get('session'),
    outcome: get('outcome'),
    period: get('period'),
  };
  const query = useCalls(filters);
  const [news, setNews] = useState(0);
  const calls = query.data?.pages.flatMap((page) => page.calls) ?? [];
  useBoardEvents(['call_ended'], ({ data }) => {
    const { tool, server, outcome } = data as unknown as RecordView;
    const fits = (wanted: string, actual: string | null) => wanted === '' || wanted === actual;
    if (fits(filters.tool, tool) && fits(filters.server, server) && fits(filters.outcome, outcome))
      setNews((before) => before + 1);
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
      <Overview />
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
