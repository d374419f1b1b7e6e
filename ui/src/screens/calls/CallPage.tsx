import { Anchor, Breadcrumbs, Group, Paper, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { RecordView } from '../../api/types';
import { CopyButton } from '../../components/CopyButton';
import { LongText } from '../../components/Result';
import { Page } from '../../components/Page';
import { StateBadge } from '../../components/StateBadge';
import { QueryState } from '../../components/states';
import { bytes, duration } from '../../components/time';

function Facts({ call }: { call: RecordView }) {
  const facts: [string, React.ReactNode][] = [
    [
      'Tool',
      call.tool === null ? (
        call.requested
      ) : (
        <Anchor component={Link} to={`/tools/${encodeURIComponent(call.tool)}`} inherit className="mono">
          {call.tool}
        </Anchor>
      ),
    ],
    [
      'Server',
      call.server === null || call.server === 'local' ? (
        (call.server ?? '–')
      ) : (
        <Anchor component={Link} to={`/servers/${encodeURIComponent(call.server)}`} inherit>
          {call.server}
        </Anchor>
      ),
    ],
    ['Began', new Date(call.started_at).toLocaleString()],
    ['Waited for a slot', duration(call.wait_ms)],
    ['Ran', duration(call.run_ms)],
    ['Result', `${bytes(call.result_bytes)}${call.result_handle === null ? '' : `, kept as ${call.result_handle}`}`],
    ['Came through', call.face],
    [
      'Session',
      call.session === null ? (
        'none'
      ) : (
        <Anchor component={Link} to={`/sessions/${encodeURIComponent(call.session)}`} inherit>
          {call.session}
        </Anchor>
      ),
    ],
    ['Caller', [call.principal, call.person, call.key].filter(Boolean).join(' · ')],
    ['Client', call.client === null ? 'not known' : `${call.client} ${call.client_version ?? ''}`],
    ['Agent', call.agent ?? 'none'],
    ['Catalog revision', call.revision],
    ['Digest of the arguments', <span className="mono">{call.argument_digest}</span>],
  ];
  return (
    <Table fz="sm" variant="vertical" layout="fixed">
      <Table.Tbody>
        {facts.map(([label, value]) => (
          <Table.Tr key={label}>
            <Table.Th w={170} scope="row">
              {label}
            </Table.Th>
            <Table.Td style={{ overflowWrap: 'anywhere' }}>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

export function CallPage() {
  const id = useParams().id ?? '';
  const query = useQuery({
    queryKey: ['call', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/calls/{id}', { params: { path: { id } }, signal })),
  });
  return (
    <Page
      tab="Call"
      title={
        <Breadcrumbs>
          <Anchor component={Link} to="/calls" inherit>
            Calls
          </Anchor>
          <span className="big">{query.data?.tool ?? query.data?.requested ?? 'Call'}</span>
        </Breadcrumbs>
      }
    >
      <QueryState query={query}>
        {(call) => (
          <>
            <Group gap="xs">
              <StateBadge state={call.outcome} />
              <Text size="xs" className="mono">
                {call.id}
              </Text>
              <CopyButton value={call.id} name="Copy the id" />
            </Group>
            {call.message !== null && <Text>{call.message}</Text>}
            <Paper withBorder p="md">
              <Facts call={call} />
            </Paper>
            {call.arguments && (
              <Paper withBorder p="md">
                <Title order={2} size="h5" mb="xs">
                  Recorded arguments
                </Title>
                <LongText text={call.arguments.text} />
              </Paper>
            )}
            {call.result && (
              <Paper withBorder p="md">
                <Title order={2} size="h5" mb="xs">
                  Recorded result
                </Title>
                <LongText text={call.result.text} />
              </Paper>
            )}
          </>
        )}
      </QueryState>
    </Page>
  );
}
