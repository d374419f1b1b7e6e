import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { Ago } from '../../components/Ago';
import { Result } from '../../components/Result';
import { StateBadge } from '../../components/StateBadge';
import { duration } from '../../components/time';
import type { JsonObject } from '../../data/drafts';
import { usePastCalls } from '../../data/history';

/** The calls of this tab. The board keeps no arguments, so that this list is the only one that has them. */
export function History({ tool, onLoad }: { tool: string; onLoad: (value: JsonObject) => void }) {
  const calls = usePastCalls(tool);
  const [opened, setOpened] = useState<number | undefined>();
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
        {calls.map((call) => (
          <div key={call.at}>
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
