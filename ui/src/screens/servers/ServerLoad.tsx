import { Text } from '@mantine/core';
import { Section } from '../../components/Section';
import { Slots } from '../../components/Slots';
import { useLoad } from '../../data/load';

/** The calls of a server that run and wait now, tool by tool. */
export function ServerLoad({ server }: { server: string }) {
  const { data } = useLoad();
  const slots = data?.slots.filter(({ tool }) => tool.startsWith(`${server}.`)) ?? [];
  return (
    <Section title="Calls now">
      {slots.length === 0 ? (
        <Text size="sm" c="dimmed">
          No call runs or waits.
        </Text>
      ) : (
        <Slots slots={slots} />
      )}
    </Section>
  );
}
