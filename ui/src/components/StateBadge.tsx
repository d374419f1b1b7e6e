import { Badge } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconCircleOff, IconLoader2, IconLock } from '@tabler/icons-react';

const LOOKS: Record<string, { color: string; icon: typeof IconCircleCheck }> = {
  ready: { color: 'green', icon: IconCircleCheck },
  ok: { color: 'green', icon: IconCircleCheck },
  available: { color: 'green', icon: IconCircleCheck },
  active: { color: 'green', icon: IconCircleCheck },
  connecting: { color: 'blue', icon: IconLoader2 },
  running: { color: 'blue', icon: IconLoader2 },
  cancelled: { color: 'gray', icon: IconCircleOff },
  hidden: { color: 'gray', icon: IconCircleOff },
  disabled: { color: 'gray', icon: IconCircleOff },
  revoked: { color: 'gray', icon: IconCircleOff },
  expired: { color: 'gray', icon: IconCircleOff },
  needs_sign_in: { color: 'orange', icon: IconLock },
};

/** A state as colour, word and icon. Words that are not known are shown as trouble. */
export function StateBadge({ state, label }: { state: string; label?: string }) {
  const { color, icon: Icon } = LOOKS[state] ?? { color: 'red', icon: IconAlertTriangle };
  return (
    <Badge color={color} variant="light" className="state" leftSection={<Icon size={12} />} data-state={state}>
      {label ?? state.replaceAll('_', ' ')}
    </Badge>
  );
}
