import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { client, unwrap } from '../../api/client';
import { Ago } from '../../components/Ago';

const SHOWN = 8;

/** What runs and waits at this moment, with a button that ends it. */
export function Waiting() {
  const { data } = useQuery({
    queryKey: ['stats-now'],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/stats/now', { signal })),
  });
  const cancel = useMutation({
    mutationFn: (id: string) => unwrap(client.POST('/api/v1/calls/{id}/cancel', { params: { path: { id } } })),
  });
  if (data === undefined) return null;
  const full = data.slots.filter(({ used, max }) => max !== null && used >= max);
  return (
    <Stack gap={4}>
      <Text size="xl" fw={700} role="status">
        {data.in_flight} / {data.max_concurrent}
      </Text>
      <Text size="xs" c="dimmed">
        {data.waiting} waiting
        {full.length > 0 && `; full: ${full.map(({ tool }) => tool).join(', ')}`}
      </Text>
      {data.calls.slice(0, SHOWN).map((call) => (
        <Group key={call.id} justify="space-between" wrap="nowrap" gap="xs">
          <Text size="xs" truncate className="mono">
            {call.tool} {call.waiting ? 'waits' : 'runs'} <Ago at={call.started_at_ms} inherit />
          </Text>
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`Cancel ${call.tool}`}
            onClick={() => cancel.mutate(call.id)}
          >
            Cancel
          </Button>
        </Group>
      ))}
      {data.calls.length > SHOWN && <Text size="xs">and {data.calls.length - SHOWN} more</Text>}
    </Stack>
  );
}
