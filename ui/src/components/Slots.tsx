import { Group, Progress, Stack, Text } from '@mantine/core';

/** The calls of a tool that run and wait, and how many may run. */
export interface SlotUse {
  tool: string;
  used: number;
  waiting: number;
  max?: number | null;
}

export const slotWords = ({ used, waiting, max }: SlotUse): string =>
  `${used} / ${max ?? '–'} in flight${waiting === 0 ? '' : `, ${waiting} waiting`}`;

/** How full each tool is: calls in flight, its limit, and how many wait. */
export function Slots({ slots }: { slots: SlotUse[] }) {
  return (
    <Stack gap={6}>
      {slots.map((slot) => {
        const share = slot.max ? Math.min(100, (100 * slot.used) / slot.max) : 0;
        return (
          <div key={slot.tool} data-slot={slot.tool}>
            <Group justify="space-between" wrap="nowrap" gap="xs">
              <Text size="xs" truncate className="mono">
                {slot.tool}
              </Text>
              <Text size="xs" style={{ whiteSpace: 'nowrap' }}>
                {slotWords(slot)}
              </Text>
            </Group>
            <Progress
              value={share}
              size="sm"
              color={slot.waiting > 0 ? 'orange' : undefined}
              aria-label={`${slot.tool}: ${slotWords(slot)}`}
            />
          </div>
        );
      })}
    </Stack>
  );
}
