import './sessions.css';
import { Anchor, Badge, Button, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { IconCopy, IconEye, IconMessage, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { Ago } from '../../components/Ago';
import { CopyButton } from '../../components/CopyButton';
import { Page } from '../../components/Page';
import { QueryState } from '../../components/states';
import { copySession, deleteSession, type SessionView, useSession } from '../../data/chat/queries';
import { useRunningTurn } from '../../data/session/queries';
import { ErrorPanel } from '../../components/states';
import { ChangeBar } from './ChangeBar';
import { kindOf, nameOf } from './kinds';
import { OwnServers } from './OwnServers';
import { RecentSteps } from './RecentSteps';
import { ServerBindings } from './ServerBindings';
import { Tick } from './Tick';
import { ToolSwitches } from './ToolSwitches';
import { ToolsetSwitches } from './ToolsetSwitches';
import { useSessionDraft } from './use-session-draft';

/** One session: what it sees, why, and what a change of it would do. */
export function SessionPage() {
  const { id = '' } = useParams();
  return <SessionDetails key={id} id={id} />;
}

function SessionDetails({ id }: { id: string }) {
  const session = useSession(id);
  return (
    <Page
      title={session.data ? nameOf(session.data) : id}
      about={session.data && <Facts session={session.data} />}
      actions={session.data && <Actions session={session.data} />}
    >
      <QueryState query={session}>{(data) => <Parts session={data} />}</QueryState>
    </Page>
  );
}

function Facts({ session }: { session: SessionView }) {
  const { word, color } = kindOf(session.kind);
  return (
    <Group gap="xs" component="span">
      <Badge className="state" color={color} variant="light">
        {word}
      </Badge>
      <Text span size="sm">
        of {session.owner}, made <Ago at={session.created_at_ms} size="sm" />
      </Text>
      <Text span size="sm" className="mono">
        {session.path}
      </Text>
      <CopyButton value={`${window.location.origin}${session.path}`} name="Copy the address for MCP clients" />
    </Group>
  );
}

function Actions({ session }: { session: SessionView }) {
  const navigate = useNavigate();
  const [isSure, setSure] = useState(false);
  const [error, setError] = useState<unknown>();
  const end = () => {
    deleteSession(session.id)
      .then(() => navigate('/sessions'))
      .catch(setError);
  };
  const copy = () => {
    copySession(session.id)
      .then(({ id }) => navigate(`/sessions/${encodeURIComponent(id)}`))
      .catch(setError);
  };
  const to = encodeURIComponent(session.id);
  return (
    <Stack gap="xs" align="flex-end">
      <Group gap="xs">
        {session.kind === 'endpoint' && (
          <Button
            component={Link}
            to={`/chat/${to}`}
            variant="default"
            size="xs"
            leftSection={<IconMessage size={14} />}
          >
            Chat
          </Button>
        )}
        <Button
          component={Link}
          to={`/renderings?session=${to}`}
          variant="default"
          size="xs"
          leftSection={<IconEye size={14} />}
        >
          Renderings
        </Button>
        <Button size="xs" variant="default" leftSection={<IconCopy size={14} />} onClick={copy}>
          Copy
        </Button>
        {isSure ? (
          <>
            <Button size="xs" color="red" onClick={end}>
              Delete it and what was said
            </Button>
            <Button size="xs" variant="default" onClick={() => setSure(false)}>
              Keep it
            </Button>
          </>
        ) : (
          <Button size="xs" variant="default" leftSection={<IconTrash size={14} />} onClick={() => setSure(true)}>
            Delete
          </Button>
        )}
      </Group>
      {error !== undefined && <ErrorPanel error={error} />}
    </Stack>
  );
}

function Parts({ session }: { session: SessionView }) {
  const change = useSessionDraft(session);
  const running = useRunningTurn(session.id);
  return (
    <Stack gap="lg">
      <Group gap="sm">
        <Text size="sm">
          Tools at revision <Tick value={session.tools_revision} label="Revision" />
        </Text>
        {running && (
          <Badge className="state" color="blue" variant="light">
            a turn runs
            {running.toolsRevision === undefined ? '' : ` with the tools of revision ${running.toolsRevision}`}
          </Badge>
        )}
        {session.provider && (
          <Text size="sm">
            answered by{' '}
            <Anchor component={Link} to={`/chat/${encodeURIComponent(session.id)}`} underline="always">
              {session.provider}
            </Anchor>
          </Text>
        )}
      </Group>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <section aria-labelledby="servers-title">
          <Title order={2} size="h5" id="servers-title" mb="xs">
            Servers
          </Title>
          <ServerBindings session={session} change={change} />
          <OwnServers session={session} />
        </section>
        <section aria-labelledby="toolsets-title">
          <Title order={2} size="h5" id="toolsets-title" mb="xs">
            Toolsets
          </Title>
          <ToolsetSwitches id={session.id} change={change} />
        </section>
      </SimpleGrid>
      <section aria-labelledby="tools-title">
        <Title order={2} size="h5" id="tools-title" mb="xs">
          Tools
        </Title>
        <ToolSwitches session={session} change={change} />
      </section>
      <section aria-labelledby="steps-title">
        <Title order={2} size="h5" id="steps-title" mb="xs">
          Recent changes
        </Title>
        <RecentSteps id={session.id} revision={session.tools_revision} />
      </section>
      <ChangeBar session={session} change={change} isRunning={running !== undefined} />
    </Stack>
  );
}
