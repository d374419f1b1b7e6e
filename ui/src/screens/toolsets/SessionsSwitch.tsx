import { Button, Group, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { switchToolsets, useToolsetsOf } from './BulkSwitch';
import { SessionSwitch } from './SessionSwitch';

/** The switch of a toolset in the chosen sessions. With several it says in how many it is on, and sets all to the same. */
export function SessionsSwitch({ sessions, name }: { sessions: string[]; name: string }) {
  const queries = useToolsetsOf(sessions);
  const change = useMutation({ mutationFn: (isOn: boolean) => switchToolsets(sessions, [name], isOn) });
  if (sessions.length === 1) return <SessionSwitch session={sessions[0]} name={name} />;
  const states = queries.flatMap(({ data }) => data?.toolsets.filter((each) => each.name === name) ?? []);
  const on = states.filter(({ enabled }) => enabled).length;
  return (
    <Group gap={6} justify="flex-end">
      <Text size="xs" role="status">
        on in {on} of {sessions.length}
      </Text>
      <Button
        size="compact-xs"
        variant="default"
        disabled={on === states.length || change.isPending}
        onClick={() => change.mutate(true)}
        aria-label={`Switch ${name} on in all ${sessions.length} sessions`}
      >
        On
      </Button>
      <Button
        size="compact-xs"
        variant="default"
        disabled={on === 0 || change.isPending}
        onClick={() => change.mutate(false)}
        aria-label={`Switch ${name} off in all ${sessions.length} sessions`}
      >
        Off
      </Button>
      {(change.data ?? []).map(({ session, error }) => (
        <Text key={session} size="xs" c="var(--mantine-color-error)" role="alert">
          {session}: {error instanceof Error ? error.message : String(error)}
        </Text>
      ))}
    </Group>
  );
}
