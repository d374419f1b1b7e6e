import { Anchor, Button, Group, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Link } from 'react-router';
import { ErrorPanel } from '../../components/states';
import { changeSession } from '../../data/chat/queries';
import { useSessionToolsets } from '../../data/session/queries';

/** Switches all toolsets that match in one step. */
export function BulkSwitch({ session, names }: { session: string; names: string[] }) {
  const toolsets = useSessionToolsets(session);
  const here = new Set(toolsets.data?.toolsets.map(({ name }) => name));
  const matching = names.filter((name) => here.has(name));
  const change = useMutation({
    mutationFn: (isOn: boolean) =>
      changeSession(session, {
        toolsets: Object.fromEntries(matching.map((name) => [name, isOn])),
        tools_revision: toolsets.data?.tools_revision,
      }),
    onSettled: () => toolsets.refetch(),
  });
  return (
    <>
      <Group gap="xs">
        <Button
          size="compact-sm"
          variant="default"
          disabled={matching.length === 0 || change.isPending}
          onClick={() => change.mutate(true)}
        >
          Switch on all {matching.length} that match
        </Button>
        <Button
          size="compact-sm"
          variant="default"
          disabled={matching.length === 0 || change.isPending}
          onClick={() => change.mutate(false)}
        >
          Switch off all {matching.length} that match
        </Button>
        <Text size="sm">
          Revision {toolsets.data?.tools_revision ?? '…'} ·{' '}
          <Anchor component={Link} to={`/sessions/${encodeURIComponent(session)}`} size="sm" underline="always">
            see what a change adds and costs first
          </Anchor>
        </Text>
      </Group>
      {toolsets.isError && <ErrorPanel error={toolsets.error} onRetry={() => void toolsets.refetch()} />}
      {change.isError && <ErrorPanel error={change.error} />}
    </>
  );
}
