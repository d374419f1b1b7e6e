import { Switch, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { ApiError } from '../../api/problem';
import { changeSession } from '../../data/chat/queries';
import { queryClient } from '../../data/query-client';
import { sessionToolsetsQuery, useSessionToolsets } from '../../data/session/queries';

/** Switches a toolset in a session. It moves at once, and back with the reason when the board refuses. */
export function SessionSwitch({ session, name }: { session: string; name: string }) {
  const toolsets = useSessionToolsets(session);
  const { queryKey } = sessionToolsetsQuery(session);
  const state = toolsets.data?.toolsets.find((toolset) => toolset.name === name);
  const change = useMutation({
    mutationFn: (isOn: boolean) =>
      changeSession(session, { toolsets: { [name]: isOn }, tools_revision: toolsets.data?.tools_revision }),
    onMutate: async (isOn) => {
      await queryClient.cancelQueries({ queryKey });
      queryClient.setQueryData(queryKey, (old) =>
        old === undefined
          ? old
          : { ...old, toolsets: old.toolsets.map((each) => (each.name === name ? { ...each, enabled: isOn } : each)) },
      );
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey }),
  });
  if (state === undefined) {
    return (
      <Text size="xs" c="dimmed">
        {toolsets.isPending ? '…' : 'not in this session'}
      </Text>
    );
  }
  const isStale = change.error instanceof ApiError && change.error.status === 409;
  return (
    <Switch
      aria-label={`${name} in the session`}
      checked={state.enabled}
      disabled={change.isPending}
      onChange={(event) => change.mutate(event.currentTarget.checked)}
      error={
        change.isError
          ? isStale
            ? 'Somebody changed the session meanwhile. This is how it is now; switch again.'
            : change.error.message
          : undefined
      }
    />
  );
}
