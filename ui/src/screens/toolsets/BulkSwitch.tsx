import { Anchor, Button, Group, Text } from '@mantine/core';
import { useMutation, useQueries } from '@tanstack/react-query';
import { Link } from 'react-router';
import { ErrorPanel } from '../../components/states';
import { changeSession } from '../../data/chat/queries';
import { queryClient } from '../../data/query-client';
import { sessionToolsetsQuery } from '../../data/session/queries';

interface BulkSwitchProps {
  sessions: string[];
  /** The toolsets that are switched. */
  names: string[];
  /** How they were chosen: by a search or one by one. */
  word: 'that match' | 'selected';
}

export interface SwitchFailure {
  session: string;
  error: unknown;
}

/** Switches toolsets in several sessions, each in one step for the revision that was on the screen. Returns the refusals. */
export async function switchToolsets(sessions: string[], names: string[], isOn: boolean): Promise<SwitchFailure[]> {
  const results = await Promise.all(
    sessions.map(async (session): Promise<SwitchFailure | undefined> => {
      const known = queryClient.getQueryData(sessionToolsetsQuery(session).queryKey);
      const here = new Set(known?.toolsets.map(({ name }) => name));
      const wanted = names.filter((name) => here.has(name));
      if (wanted.length === 0) return undefined;
      try {
        const toolsets = Object.fromEntries(wanted.map((name) => [name, isOn]));
        await changeSession(session, { toolsets, tools_revision: known?.tools_revision });
        return undefined;
      } catch (error) {
        return { session, error };
      }
    }),
  );
  await queryClient.invalidateQueries({ queryKey: ['session-toolsets'] });
  return results.filter((each) => each !== undefined);
}

export const useToolsetsOf = (sessions: string[]) =>
  useQueries({ queries: sessions.map((session) => sessionToolsetsQuery(session)) });

/** Switches all chosen toolsets in all chosen sessions. What one session refuses does not stop the others. */
export function BulkSwitch({ sessions, names, word }: BulkSwitchProps) {
  const queries = useToolsetsOf(sessions);
  const here = new Set(queries.flatMap(({ data }) => data?.toolsets.map(({ name }) => name) ?? []));
  const matching = names.filter((name) => here.has(name));
  const change = useMutation({ mutationFn: (isOn: boolean) => switchToolsets(sessions, matching, isOn) });
  const failed = queries.find(({ isError }) => isError);
  const place = sessions.length === 1 ? '' : ` in ${sessions.length} sessions`;
  return (
    <>
      <Group gap="xs">
        {[true, false].map((isOn) => (
          <Button
            key={String(isOn)}
            size="compact-sm"
            variant="default"
            disabled={matching.length === 0 || change.isPending}
            onClick={() => change.mutate(isOn)}
          >
            {isOn ? 'Switch on' : 'Switch off'} all {matching.length} {word}
            {place}
          </Button>
        ))}
        {sessions.map((session, index) => (
          <Text size="sm" key={session}>
            {sessions.length > 1 && `${session}: `}Revision {queries[index].data?.tools_revision ?? '…'} ·{' '}
            <Anchor component={Link} to={`/sessions/${encodeURIComponent(session)}`} size="sm" underline="always">
              see what a change adds and costs first
            </Anchor>
          </Text>
        ))}
      </Group>
      {failed && <ErrorPanel error={failed.error} onRetry={() => void failed.refetch()} />}
      {change.isError && <ErrorPanel error={change.error} />}
      {change.data?.map(({ session, error }) => (
        <div key={session}>
          <Text size="sm" fw={600}>
            Not changed: {session}
          </Text>
          <ErrorPanel error={error} />
        </div>
      ))}
    </>
  );
}
