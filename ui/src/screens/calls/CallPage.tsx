import { Anchor, Group, Paper, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { RecordView } from '../../api/types';
import { CopyButton } from '../../components/CopyButton';
import { DetailPage } from '../../components/DetailPage';
import { type Fact, Facts } from '../../components/Facts';
import { LongText } from '../../components/Result';
import { Section } from '../../components/Section';
import { StateBadge } from '../../components/StateBadge';
import { bytes, duration } from '../../components/time';

function factsOf(call: RecordView): Fact[] {
  return [
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
}

export function CallPage() {
  const id = useParams().id ?? '';
  const query = useQuery({
    queryKey: ['call', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/calls/{id}', { params: { path: { id } }, signal })),
  });
  const name = query.data?.tool ?? query.data?.requested ?? 'Call';
  return (
    <DetailPage list={{ to: '/calls', label: 'Calls' }} name={name} tab="Call" query={query}>
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
            <Facts facts={factsOf(call)} width={170} />
          </Paper>
          {call.arguments && (
            <Section title="Recorded arguments">
              <LongText text={call.arguments.text} />
            </Section>
          )}
          {call.result && (
            <Section title="Recorded result">
              <LongText text={call.result.text} />
            </Section>
          )}
        </>
      )}
    </DetailPage>
  );
}
