import { Group, NativeSelect, Paper, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';
import { client, unwrap } from '../../api/client';
import { ErrorPanel } from '../../components/states';
import { duration } from '../../components/time';
import { useBoardEvents } from '../../data/live';
import { barsOf, type CallNumbers, type CallStatistics, percent, totalOf } from './statistics';
import { Timeline } from './Timeline';
import { Waiting } from './Waiting';

/** What calls are grouped by in the table. */
const GROUPS = ['tool', 'server', 'outcome', 'face'] as const;
type Group = (typeof GROUPS)[number];
const isGroup = (word: string): word is Group => (GROUPS as readonly string[]).includes(word);

/** A period without an end is the last hour here: the log below goes on. */
const USUAL = 3_600_000;
/** The period moves on although nothing is called. */
const EVERY = 10_000;
/** Calls that end in a moment are counted together. */
const GATHER = 700;
const SHOWN = 10;

export interface OverviewProps {
  period: { ms: number; label: string };
  tool: string;
  server: string;
  by: string;
  onBy: (by: string) => void;
}

function useStatistics({ period, tool, server }: OverviewProps, by: Group) {
  const queries = useQueryClient();
  const queryKey = ['stats-calls', period.ms, tool, server, by];
  const query = useQuery({
    queryKey,
    queryFn: ({ signal }) => {
      const from = new Date(Date.now() - (period.ms || USUAL)).toISOString();
      const asked = { from, by, tool: tool || undefined, server: server || undefined };
      return unwrap(client.GET('/api/v1/stats/calls', { params: { query: asked }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: EVERY,
  });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useBoardEvents(['call_ended'], () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void queries.invalidateQueries({ queryKey: ['stats-calls'] });
    }, GATHER);
  });
  return query;
}

function Numbers({ name, numbers }: { name: string; numbers: CallNumbers }) {
  return (
    <Table.Tr>
      <Table.Td className="mono">{name}</Table.Td>
      <Table.Td>{numbers.count}</Table.Td>
      <Table.Td>{percent(numbers.errors, numbers.count)}</Table.Td>
      <Table.Td>{duration(numbers.p50_ms)}</Table.Td>
      <Table.Td>{duration(numbers.p95_ms)}</Table.Td>
      <Table.Td>{duration(numbers.p99_ms)}</Table.Td>
      <Table.Td>{duration(numbers.max_ms)}</Table.Td>
    </Table.Tr>
  );
}

function Series({ statistics, by }: { statistics: CallStatistics; by: string }) {
  const { series } = statistics;
  return (
    <div className="wide-table" tabIndex={0} role="region" aria-label={`Calls by ${by}`}>
      <Table fz="sm">
        <Table.Thead>
          <Table.Tr>
            {[by.charAt(0).toUpperCase() + by.slice(1), 'Calls', 'Errors', 'p50', 'p95', 'p99', 'Longest'].map(
              (title) => (
                <Table.Th key={title}>{title}</Table.Th>
              ),
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {series.slice(0, SHOWN).map(({ key, total }) => (
            <Numbers
              key={key ?? ''}
              name={(by === 'outcome' ? key?.replaceAll('_', ' ') : key) ?? 'others'}
              numbers={total}
            />
          ))}
        </Table.Tbody>
      </Table>
      {series.length > SHOWN && (
        <Text size="xs" c="dimmed">
          and {series.length - SHOWN} more
        </Text>
      )}
    </div>
  );
}

/** What runs now, and how the calls of the period went, from the records of the board. */
export function Overview(props: OverviewProps) {
  const by = isGroup(props.by) ? props.by : 'tool';
  const period = props.period.ms === 0 ? 'last hour' : props.period.label.toLowerCase();
  const { data, error, refetch } = useStatistics(props, by);
  const bars = useMemo(() => (data === undefined ? [] : barsOf(data)), [data]);
  const { count, errors } = totalOf(bars);
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, md: 3 }}>
        <Paper withBorder p="sm">
          <Text size="xs" c="dimmed">
            In flight
          </Text>
          <Waiting />
        </Paper>
        <Paper withBorder p="sm">
          <Text size="xs" c="dimmed">
            Errors in the {period}
          </Text>
          <Text size="xl" fw={700}>
            {percent(errors, count)}
          </Text>
          <Text size="xs" c="dimmed">
            {errors} of {count} calls{data?.cut && ', the newest of more'}
          </Text>
        </Paper>
        <Paper withBorder p="sm">
          <Text size="xs" c="dimmed">
            Calls in the {period}
          </Text>
          <Timeline bars={bars} period={period} />
        </Paper>
      </SimpleGrid>
      {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
      {data !== undefined && count > 0 && (
        <details
          open={props.by !== ''}
          onToggle={({ currentTarget }) =>
            currentTarget.open !== (props.by !== '') && props.onBy(currentTarget.open ? by : '')
          }
        >
          <summary>How long they ran, and how many failed</summary>
          <Group align="flex-end" my="xs">
            <NativeSelect
              label="For each"
              data={GROUPS.map((value) => ({ value, label: value === 'face' ? 'interface' : value }))}
              value={by}
              onChange={(event) => props.onBy(event.currentTarget.value)}
            />
          </Group>
          <Series statistics={data} by={by === 'face' ? 'interface' : by} />
        </details>
      )}
    </Stack>
  );
}
