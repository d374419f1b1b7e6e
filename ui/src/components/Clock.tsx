import { Text } from '@mantine/core';

const isToday = (time: Date): boolean => time.toDateString() === new Date().toDateString();

/** The time of day, with the day unless it is today. */
export function Clock({ at }: { at: number }) {
  const time = new Date(at);
  const hour = time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  const day = isToday(time) ? '' : `${time.toLocaleDateString([], { day: 'numeric', month: 'short' })} `;
  return (
    <Text size="xs" c="dimmed" component="time" dateTime={time.toISOString()} title={time.toLocaleString()}>
      {day}
      {hour}
    </Text>
  );
}
