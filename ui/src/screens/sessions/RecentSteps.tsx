import { Stack, Text } from '@mantine/core';
import { Ago } from '../../components/Ago';
import { QueryState } from '../../components/states';
import { useSteps } from '../../data/session/queries';
import { Names } from './Names';

const CAUSES: Record<string, string> = {
  session: 'the session was changed',
  catalog: 'servers or the configuration changed',
  access: 'what its owner may use changed',
};

/** What changed the tools lately. The board remembers the last steps since its start. */
export function RecentSteps({ id, revision }: { id: string; revision: number }) {
  const steps = useSteps(id, revision);
  if (revision === 1) return <Text size="sm">Nothing has changed since the session was made.</Text>;
  return (
    <QueryState query={steps}>
      {(list) =>
        list.length === 0 ? (
          <Text size="sm">The board no longer remembers what changed.</Text>
        ) : (
          <Stack gap="xs">
            {list.map((step) => (
              <div key={step.tools_revision}>
                <Text size="sm">
                  <strong>Revision {step.tools_revision}</strong>: {CAUSES[step.cause] ?? step.cause},{' '}
                  <Ago at={step.at_ms} size="sm" />
                </Text>
                <Names word="added" names={step.added} />
                <Names word="removed" names={step.removed} />
                <Names word="changed" names={step.changed} />
              </div>
            ))}
          </Stack>
        )
      }
    </QueryState>
  );
}
