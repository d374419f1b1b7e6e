import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { Ago } from '../../components/Ago';
import { DiffView } from '../../components/DiffView';
import { Result } from '../../components/Result';
import { StateBadge } from '../../components/StateBadge';
import { duration } from '../../components/time';
import type { JsonObject } from '../../data/drafts';
import { type PastCall, usePastCalls } from '../../data/history';

/** The calls of this tab. The board keeps no arguments, so that this list is the only one that has them. */
export function History({ tool, onLoad }: { tool: string; onLoad: (value: JsonObject) => void }) {
  const calls = usePastCalls(tool);
  const [opened, setOpened] = useState<number | undefined>();
  const [compared, setCompared] = useState<number[]>([]);
  // The two that were chosen last, the older one first.
  const compare = (at: number) =>
    setCompared(compared.includes(at) ? compared.filter((other) => other !== at) : [...compared, at].slice(-2));
  const [older, newer] = calls.filter(({ at }) => compared.includes(at)).sort((a, b) => a.at - b.at);
  if (calls.length === 0) return null;
  return (
    <Paper withBorder p="md">
      <Stack gap="xs">
        <Title order={2} size="h5">
          History
        </Title>
        <Text size="xs" c="dimmed">
          Calls of this tab; closing it forgets them.
        </Text>
        {compared.length === 1 && <Text size="sm">Choose another call to compare with.</Text>}
        {newer !== undefined && <Comparison older={older} newer={newer} />}
        {calls.map((call) => (
          <div key={call.at} data-past={call.at}>
            <Group justify="space-between" wrap="nowrap" gap="xs">
              <Group gap="xs" wrap="nowrap" miw={0}>
                <StateBadge state={call.outcome} />
                <Text size="xs" truncate className="mono">
                  {JSON.stringify(call.arguments)}
                </Text>
              </Group>
              <Group gap={4} wrap="nowrap">
                <Text size="xs" c="dimmed" visibleFrom="sm">
                  {call.runMs !== undefined && duration(call.runMs)} <Ago at={call.at} size="xs" />
                </Text>
                <Button size="compact-xs" variant="default" onClick={() => onLoad(call.arguments)}>
                  Load
                </Button>
                {calls.length > 1 && (
                  <Button
                    size="compact-xs"
                    variant={compared.includes(call.at) ? 'filled' : 'default'}
                    aria-pressed={compared.includes(call.at)}
                    onClick={() => compare(call.at)}
                  >
                    Compare
                  </Button>
                )}
                {call.result !== undefined && (
                  <Button
                    size="compact-xs"
                    variant="default"
                    aria-expanded={opened === call.at}
                    onClick={() => setOpened(opened === call.at ? undefined : call.at)}
                  >
                    {opened === call.at ? 'Hide' : 'Show'}
                  </Button>
                )}
              </Group>
            </Group>
            {opened === call.at && <Result result={call.result as Record<string, unknown>} />}
          </div>
        ))}
      </Stack>
    </Paper>
  );
}

const written = ({ arguments: sent, outcome, result }: PastCall): string =>
  JSON.stringify({ arguments: sent, outcome, result: result ?? 'not kept, because it is large' }, null, 2);

function Comparison({ older, newer }: { older: PastCall; newer: PastCall }) {
  const [before, after] = [written(older), written(newer)];
  if (before === after) return <Text size="sm">Both calls had the same arguments and the same result.</Text>;
  return <DiffView before={before} after={after} label="The older call beside the newer one" />;
}
