import { Anchor, Button, Card, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { Link } from 'react-router';
import type { ServerView } from '../../api/types';
import { Page } from '../../components/Page';
import { useSearch } from '../../components/search-params';
import { Empty, QueryState } from '../../components/states';
import { useRole } from '../../data/me';
import { useServers } from '../../data/queries';
import { ServerState } from './ServerState';

const ServerForm = lazy(() => import('./ServerForm'));

function ServerCard({ server }: { server: ServerView }) {
  return (
    <Card withBorder padding="sm" data-server={server.name}>
      <Stack gap={6}>
        <Group justify="space-between" wrap="nowrap">
          <Anchor component={Link} to={`/servers/${encodeURIComponent(server.name)}`} fw={600} className="mono">
            {server.name}
          </Anchor>
          <ServerState server={server} />
        </Group>
        <Text size="sm">
          {server.tools === server.offered_tools
            ? `${server.tools} tools`
            : `${server.tools} of ${server.offered_tools} tools admitted`}{' '}
          · {server.mode} · {server.transport}
          {server.era !== null && ` · ${server.era} era`}
          {server.protocol !== null && ` (${server.protocol})`}
        </Text>
        <Text size="xs" c="dimmed" truncate className="mono" title={server.place}>
          {server.place}
        </Text>
        {server.source != null && (
          <Text size="xs" c="dimmed">
            from the source {server.source}
          </Text>
        )}
        {server.error !== null && (
          <Text size="sm" c="var(--mantine-color-error)">
            {server.error}
          </Text>
        )}
        {server.hint !== null && (
          <Text size="sm">
            <strong>What to do:</strong> {server.hint}
          </Text>
        )}
      </Stack>
    </Card>
  );
}

export function ServersScreen() {
  const query = useServers();
  const mayAdd = useRole('admin');
  const [search, setSearch] = useSearch();
  const isAdding = search.has('add');
  const add = (
    <Button
      leftSection={<IconPlus size={16} />}
      onClick={() => setSearch({ add: '' })}
      disabled={!mayAdd}
      title={mayAdd ? undefined : 'This needs the role admin'}
    >
      Add a server
    </Button>
  );
  return (
    <Page title="Servers" about="The MCP servers of this board, as they are now" actions={add}>
      {isAdding && (
        <Suspense fallback={null}>
          <ServerForm onClose={() => setSearch({})} />
        </Suspense>
      )}
      <QueryState query={query}>
        {({ servers }) =>
          servers.length === 0 ? (
            <Empty
              title="No servers yet"
              command="switchboard --config FILE server set NAME --tool-url URL"
              action={add}
            >
              A server brings tools. Servers that are programs are added in the configuration or on the command line.
            </Empty>
          ) : (
            <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }}>
              {servers.map((server) => (
                <ServerCard key={server.name} server={server} />
              ))}
            </SimpleGrid>
          )
        }
      </QueryState>
    </Page>
  );
}
