import { Alert, Anchor, Group, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { ServerDetail, ServerView } from '../../api/types';
import { Ago } from '../../components/Ago';
import { DetailPage } from '../../components/DetailPage';
import { type Fact, Facts } from '../../components/Facts';
import { Place } from '../../components/Place';
import { Section } from '../../components/Section';
import { Empty } from '../../components/states';
import { duration } from '../../components/time';
import { useMe, useRole } from '../../data/me';
import { useServers } from '../../data/queries';
import { ServerAccount } from './ServerAccount';
import { ServerActions } from './ServerActions';
import { ServerLoad } from './ServerLoad';
import { ServerLog } from './ServerLog';
import { ServerState } from './ServerState';
import { SignInAtServer } from './SignInAtServer';

function factsOf(server: ServerDetail): Fact[] {
  return [
    ['Place', <span className="mono">{server.place}</span>],
    ['Transport', server.transport],
    [
      'Era',
      server.era === null
        ? 'not known yet'
        : `${server.era}${server.protocol === null ? '' : `, protocol ${server.protocol}`}`,
    ],
    ['Mode', server.mode],
    ['Required', server.required ? 'yes: the board is not ready without it' : 'no'],
    ['Comes from', server.source ?? 'the configuration'],
    [
      'Says of itself',
      server.reported_name === null ? 'nothing' : `${server.reported_name} ${server.reported_version ?? ''}`,
    ],
    ['Tools', `${server.tools} admitted of ${server.offered_tools}`],
    ['Calls in flight', server.in_flight],
    ['Connected in', server.connect_ms === null ? 'not connected' : duration(server.connect_ms)],
    ['Listed', server.listed_at_ms === null ? 'not yet' : <Ago at={server.listed_at_ms} inherit />],
    [
      'Last failure',
      server.last_error_at_ms === null ? 'none in this run' : <Ago at={server.last_error_at_ms} inherit />,
    ],
  ];
}

function Trouble({ server }: { server: ServerDetail }) {
  if (server.error === null) return null;
  return (
    <Alert color="red" variant="light" title="The server is not available" role="alert">
      <Stack gap={4}>
        <Text size="sm">{server.error}</Text>
        {server.hint !== null && (
          <Text size="sm">
            <strong>What to do:</strong> {server.hint}
          </Text>
        )}
        {server.retry_at_ms !== null && (
          <Text size="sm">It is tried again at {new Date(server.retry_at_ms).toLocaleTimeString()}.</Text>
        )}
      </Stack>
    </Alert>
  );
}

function Declared({ server }: { server: ServerDetail }) {
  if (server.declared === null) return null;
  const origins = Object.entries(server.origins as Record<string, string>);
  return (
    <Section title="Its entry">
      <pre className="output" tabIndex={0} aria-label="The entry in the configuration">
        {JSON.stringify(server.declared, null, 2)}
      </pre>
      {origins.length > 0 && (
        <details className="fold">
          <summary>Where each value stands</summary>
          <Table fz="xs">
            <Table.Tbody>
              {origins.map(([pointer, place]) => (
                <Table.Tr key={pointer}>
                  <Table.Td className="mono">{pointer}</Table.Td>
                  <Table.Td>
                    <Place of={place} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </details>
      )}
    </Section>
  );
}

function Links({ server }: { server: ServerView }) {
  return (
    <Group gap="sm">
      <ServerState server={server} />
      <Anchor component={Link} to={`/tools?server=${encodeURIComponent(server.name)}`} size="sm">
        Its tools
      </Anchor>
      <Anchor component={Link} to={`/calls?server=${encodeURIComponent(server.name)}`} size="sm">
        Its calls
      </Anchor>
    </Group>
  );
}

function Server({ server }: { server: ServerDetail }) {
  return (
    <>
      <Links server={server} />
      <Trouble server={server} />
      <SignInAtServer server={server} />
      <div className="two-panes">
        <Stack>
          <Section title="Connection">
            <Facts facts={factsOf(server)} width={140} />
          </Section>
          <ServerLoad server={server.name} />
        </Stack>
        <Stack>
          <ServerAccount server={server.name} />
          {server.refused.length > 0 && (
            <Section title="Tools that are not admitted">
              {server.refused.map(({ tool, reason }) => (
                <Text key={`${tool}${reason}`} size="sm">
                  <span className="mono">{tool ?? server.name}</span>: {reason}
                </Text>
              ))}
            </Section>
          )}
          <ServerLog server={server} />
          <Declared server={server} />
        </Stack>
      </div>
    </>
  );
}

/** What a caller sees who may not look behind the list of servers: its state and the own account. */
function ListedServer({ name }: { name: string }) {
  const query = useServers();
  return (
    <DetailPage list={{ to: '/servers', label: 'Servers' }} name={name} query={query}>
      {({ servers }) => {
        const server = servers.find((each) => each.name === name);
        if (server === undefined) return <Empty title={`There is no server ${name}`} />;
        return (
          <>
            <Links server={server} />
            {server.error !== null && <Text>{server.error}</Text>}
            <ServerAccount server={name} />
          </>
        );
      }}
    </DetailPage>
  );
}

function WholeServer({ name }: { name: string }) {
  const query = useQuery({
    queryKey: ['server', name],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/servers/{name}', { params: { path: { name } }, signal })),
  });
  return (
    <DetailPage
      list={{ to: '/servers', label: 'Servers' }}
      name={name}
      query={query}
      actions={(server) => <ServerActions server={server} />}
    >
      {(server) => <Server server={server} />}
    </DetailPage>
  );
}

export function ServerPage() {
  const name = useParams().name ?? '';
  const isKnown = useMe().data !== undefined;
  const isOperator = useRole('operator');
  return isKnown && !isOperator ? <ListedServer name={name} /> : <WholeServer key={name} name={name} />;
}
