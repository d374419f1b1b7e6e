import { Anchor, Group, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { client, unwrap } from '../../api/client';
import { CopyButton } from '../../components/CopyButton';
import { useRole } from '../../data/me';

/** How a person adds servers: those with an address in the page, programs in the configuration file. */
export function OwnServers() {
  const mayRead = useRole('operator');
  const { data: config } = useQuery({
    queryKey: ['config'],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/config', { signal })),
    enabled: mayRead,
  });
  const file = config?.file ?? 'FILE';
  const command = `switchboard --config ${file} server set files --command npx -- -y @modelcontextprotocol/server-filesystem .`;
  return (
    <>
      <Title order={3} size="h6">
        Your own servers
      </Title>
      <Text size="sm">
        <Anchor component={Link} to="/servers?add" inherit>
          Add an HTTP server here
        </Anchor>
        . A server that is a program goes into the configuration file: the command line writes it, and the board takes
        it over at once.
      </Text>
      <Group gap="xs" wrap="nowrap" align="flex-start">
        <pre className="output grow" tabIndex={0} aria-label="Command that adds a program">
          {command}
        </pre>
        <CopyButton value={command} name="Copy the command that adds a program" />
      </Group>
      <Text size="sm">
        <span className="mono">switchboard import</span> takes over the servers that Claude Desktop, Claude Code,
        Cursor, VS Code, Codex or Gemini CLI has.
      </Text>
    </>
  );
}
