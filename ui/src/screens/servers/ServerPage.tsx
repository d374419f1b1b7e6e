import { Alert, Anchor, Breadcrumbs, Button, Group, Modal, Paper, Stack, Table, Text, Title } from '@mantine/core';
import { IconPlugConnected, IconTrash } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { ServerDetail } from '../../api/types';
import { Ago } from '../../components/Ago';
import { Page } from '../../components/Page';
import { ErrorPanel, QueryState } from '../../components/states';
import { duration } from '../../components/time';
import { useRole } from '../../data/me';
import { ServerState } from './ServerState';
import { SignInAtServer } from './SignInAtServer';

function Facts({ server }: { server: ServerDetail }) {
  const facts: [string, React.ReactNode][] = [
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
  return (
    <Table fz="sm" variant="vertical" layout="fixed">
      <Table.Tbody>
        {facts.map(([label, value]) => (
          <Table.Tr key={label}>
            <Table.Th w={140} scope="row">
              {label}
            </Table.Th>
            <Table.Td style={{ overflowWrap: 'anywhere' }}>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
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
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="xs">
        Its entry
      </Title>
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
                  <Table.Td className="mono">{place}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </details>
      )}
    </Paper>
  );
}

function Actions({ server }: { server: ServerDetail }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const isAdmin = useRole('admin');
  const [isAsking, setAsking] = useState(false);
  const params = { path: { name: server.name } };
  const reconnect = useMutation({
    mutationFn: () => unwrap(client.POST('/api/v1/servers/{name}/reconnect', { params })),
    onSettled: () =>
      queries.invalidateQueries({ predicate: ({ queryKey }) => ['server', 'servers'].includes(String(queryKey[0])) }),
  });
  const remove = useMutation({
    mutationFn: () =>
      unwrap(
        client.DELETE('/api/v1/servers/{name}', {
          params: { ...params, header: { 'If-Match': server.etag === null ? '*' : `"${server.etag}"` } },
        }),
      ),
    onSuccess: async () => {
      await navigate('/servers');
      await queries.invalidateQueries();
    },
  });
  return (
    <Stack gap="xs" align="flex-end">
      <Group gap="xs">
        <Button
          variant="default"
          leftSection={<IconPlugConnected size={16} />}
          loading={reconnect.isPending}
          onClick={() => reconnect.mutate()}
        >
          Reconnect
        </Button>
        {isAdmin && server.declared !== null && (
          <Button variant="outline" color="red" leftSection={<IconTrash size={16} />} onClick={() => setAsking(true)}>
            Remove
          </Button>
        )}
      </Group>
      {reconnect.isError && <ErrorPanel error={reconnect.error} />}
      <Modal
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={`Remove ${server.name}?`}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <Stack>
          <Text size="sm">
            Its entry is taken out of the configuration file, and its {server.tools} tools are gone for everybody.
            Running calls are ended.
          </Text>
          {remove.isError && <ErrorPanel error={remove.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setAsking(false)}>
              Keep it
            </Button>
            <Button color="red" loading={remove.isPending} onClick={() => remove.mutate()}>
              Remove it
            </Button>
          </Group>
        </Stack>
      </Modal>
    </Stack>
  );
}

function Server({ server }: { server: ServerDetail }) {
  return (
    <>
      <Group gap="sm">
        <ServerState server={server} />
        <Anchor component={Link} to={`/tools?server=${encodeURIComponent(server.name)}`} size="sm">
          Its tools
        </Anchor>
        <Anchor component={Link} to={`/calls?server=${encodeURIComponent(server.name)}`} size="sm">
          Its calls
        </Anchor>
      </Group>
      <Trouble server={server} />
      <SignInAtServer server={server} />
      <div className="two-panes">
        <Paper withBorder p="md">
          <Title order={2} size="h5" mb="xs">
            Connection
          </Title>
          <Facts server={server} />
        </Paper>
        <Stack>
          {server.refused.length > 0 && (
            <Paper withBorder p="md">
              <Title order={2} size="h5" mb="xs">
                Tools that are not admitted
              </Title>
              {server.refused.map(({ tool, reason }) => (
                <Text key={`${tool}${reason}`} size="sm">
                  <span className="mono">{tool ?? server.name}</span>: {reason}
                </Text>
              ))}
            </Paper>
          )}
          {server.stderr != null && server.stderr !== '' && (
            <Paper withBorder p="md">
              <Title order={2} size="h5" mb="xs">
                Last lines of its standard error
              </Title>
              <pre className="output" tabIndex={0} aria-label="Standard error of the server">
                {server.stderr}
              </pre>
            </Paper>
          )}
          <Declared server={server} />
        </Stack>
      </div>
    </>
  );
}

export function ServerPage() {
  const name = useParams().name ?? '';
  const query = useQuery({
    queryKey: ['server', name],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/servers/{name}', { params: { path: { name } }, signal })),
  });
  return (
    <Page
      tab={name}
      title={
        <Breadcrumbs>
          <Anchor component={Link} to="/servers" inherit>
            Servers
          </Anchor>
          <span className="mono big">{name}</span>
        </Breadcrumbs>
      }
      actions={query.data && <Actions server={query.data} />}
    >
      <QueryState query={query}>{(server) => <Server server={server} />}</QueryState>
    </Page>
  );
}
