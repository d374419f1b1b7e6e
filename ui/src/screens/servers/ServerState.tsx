import { Group } from '@mantine/core';
import type { ServerView } from '../../api/types';
import { Ago } from '../../components/Ago';
import { StateBadge } from '../../components/StateBadge';

/** The state of a server as a word, with since when. */
export function ServerState({ server }: { server: ServerView }) {
  const since = server.since_ms;
  return (
    <Group gap={6} wrap="nowrap">
      <StateBadge state={server.state} />
      {since > 0 && <Ago at={since} size="xs" c="dimmed" />}
    </Group>
  );
}
