import './sessions.css';
import { Anchor, Badge, Button, Group, SegmentedControl, Table, Text } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { Link } from 'react-router';
import { Ago } from '../../components/Ago';
import { Page } from '../../components/Page';
import { useSearch } from '../../components/search-params';
import { Wide } from '../../components/Wide';
import { SearchField } from '../../components/SearchField';
import { Empty, QueryState } from '../../components/states';
import type { SessionView } from '../../data/chat/queries';
import { useSessions } from '../../data/queries';
import { kindOf, matchingSessions, nameOf } from './kinds';
import { NewSession } from './NewSession';
import { Tick } from './Tick';

const SHOWN = 200;

/** All sessions of the caller: chats and connected MCP clients. */
export function SessionsScreen() {
  const sessions = useSessions();
  const [search, setSearch] = useSearch();
  const setNew = (isNew: boolean) =>
    setSearch((old) => {
      if (isNew) old.set('new', '');
      else old.delete('new');
      return old;
    });
  const set = (name: string, value: string) =>
    setSearch(
      (old) => {
        if (value === '') old.delete(name);
        else old.set(name, value);
        return old;
      },
      { replace: true },
    );
  const text = search.get('q') ?? '';
  const kind = search.get('kind') ?? '';
  return (
    <Page
      title="Sessions"
      about="Each chat and each connected MCP client has its own view of the tools."
      actions={
        <Button leftSection={<IconPlus size={16} />} onClick={() => setNew(true)}>
          New session
        </Button>
      }
    >
      {search.has('new') && <NewSession onClose={() => setNew(false)} />}
      <Group gap="sm">
        <SearchField
          aria-label="Search sessions"
          placeholder="Search title, id, owner, client"
          value={text}
          onChange={(value) => set('q', value)}
          style={{ flex: '1 1 220px' }}
        />
        <SegmentedControl
          transitionDuration={0}
          aria-label="Kind of session"
          value={kind}
          onChange={(value) => set('kind', value)}
          data={[
            { value: '', label: 'All' },
            { value: 'endpoint', label: 'Chats' },
            { value: 'client', label: 'MCP clients' },
          ]}
        />
      </Group>
      <QueryState query={sessions}>
        {(data) => {
          const found = matchingSessions(data.sessions, text, kind);
          if (data.sessions.length === 0) {
            return (
              <Empty
                title="There are no sessions"
                action={
                  <Button component={Link} to="/chat">
                    Begin a chat
                  </Button>
                }
              >
                A chat makes one, and so does an MCP client that connects to /mcp.
              </Empty>
            );
          }
          if (found.length === 0) {
            return (
              <Empty
                title="No session matches"
                action={
                  <Button variant="default" onClick={() => setSearch({}, { replace: true })}>
                    Show all {data.sessions.length}
                  </Button>
                }
              />
            );
          }
          return (
            <>
              <Text size="sm" role="status">
                {found.length} of {data.sessions.length}
                {found.length > SHOWN ? `; the first ${SHOWN} are shown` : ''}
              </Text>
              <SessionTable sessions={found.slice(0, SHOWN)} />
            </>
          );
        }}
      </QueryState>
    </Page>
  );
}

function SessionTable({ sessions }: { sessions: SessionView[] }) {
  return (
    <Wide label="Sessions">
      <Table miw={640} highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Session</Table.Th>
            <Table.Th>Kind</Table.Th>
            <Table.Th>Provider</Table.Th>
            <Table.Th>Revision</Table.Th>
            <Table.Th>Servers</Table.Th>
            <Table.Th>Changed</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {sessions.map((session) => (
            <SessionRow key={session.id} session={session} />
          ))}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}

function SessionRow({ session }: { session: SessionView }) {
  const { word, color } = kindOf(session.kind);
  const name = nameOf(session);
  const client = session.clients?.[0];
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor component={Link} to={`/sessions/${encodeURIComponent(session.id)}`} fw={600} size="sm">
          {name}
        </Anchor>
        <Text size="xs" c="dimmed" className="mono" lineClamp={1}>
          {name === session.id ? session.owner : `${session.id} · ${session.owner}`}
        </Text>
      </Table.Td>
      <Table.Td>
        <Badge className="state" color={color} variant="light">
          {word}
        </Badge>
        {client && (
          <Text size="xs" c="dimmed">
            {client.name} {client.version} · {client.protocol_version}
          </Text>
        )}
      </Table.Td>
      <Table.Td>{session.provider ?? <Text c="dimmed">–</Text>}</Table.Td>
      <Table.Td>
        <Tick value={session.tools_revision} />
      </Table.Td>
      <Table.Td>{session.servers ? session.servers.join(', ') || 'none' : 'all'}</Table.Td>
      <Table.Td>
        <Ago at={session.updated_at_ms} size="sm" />
      </Table.Td>
    </Table.Tr>
  );
}
