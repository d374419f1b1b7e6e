import { Badge } from '@mantine/core';
import { IconBolt, IconBoltOff, IconRefresh } from '@tabler/icons-react';
import type { StreamStatus } from '../data/event-stream';
import { useStreamState } from '../data/live';

const WORDS: Record<StreamStatus, { label: string; color: string; about: string; icon: typeof IconBolt }> = {
  connecting: { label: 'Connecting', color: 'gray', about: 'The event stream is being opened', icon: IconRefresh },
  live: { label: 'Live', color: 'green', about: 'Changes show as they happen', icon: IconBolt },
  polling: {
    label: 'Every 3 s',
    color: 'gray',
    about: 'This board has no event stream and is asked again',
    icon: IconRefresh,
  },
  paused: { label: 'Paused', color: 'gray', about: 'The tab was hidden; it catches up now', icon: IconRefresh },
  disconnected: {
    label: 'Disconnected',
    color: 'red',
    about: 'The board does not answer and is tried again',
    icon: IconBoltOff,
  },
  refused: { label: 'Signed out', color: 'red', about: 'The board wants a key', icon: IconBoltOff },
};

/** Says in a word whether the screen shows what is true now. */
export function LiveIndicator() {
  const { status, since } = useStreamState();
  const { label, color, about, icon: Icon } = WORDS[status];
  return (
    <Badge
      color={color}
      variant="light"
      className="state"
      leftSection={<Icon size={12} />}
      role="status"
      data-status={status}
      title={`${about}, since ${new Date(since).toLocaleTimeString()}`}
    >
      {label}
    </Badge>
  );
}
