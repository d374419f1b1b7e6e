import { Text, type TextProps } from '@mantine/core';
import { ago, useNow } from './time';

/** How long ago something was; the exact time is in the tooltip. */
export function Ago({ at, ...props }: { at: number | string } & TextProps) {
  const now = useNow();
  const time = typeof at === 'string' ? Date.parse(at) : at;
  if (!Number.isFinite(time)) return null;
  return (
    <Text span {...props}>
      <time dateTime={new Date(time).toISOString()} title={new Date(time).toLocaleString()}>
        {ago(time, now)}
      </time>
    </Text>
  );
}
