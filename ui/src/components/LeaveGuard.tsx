import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { type RefObject, useEffect } from 'react';
import { useBlocker } from 'react-router';

interface LeaveGuardProps {
  /** Whether there are edits that are not saved. */
  when: boolean;
  /** What the edits are about, as part of a sentence. */
  what: string;
  onDiscard: () => void;
  /** Lets the next change of the address pass, as after a save that leads elsewhere. */
  isSaved?: RefObject<boolean>;
}

/** Asks before unsaved edits are left, inside the page and when the tab is closed. */
export function LeaveGuard({ when, what, onDiscard, isSaved }: LeaveGuardProps) {
  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) =>
      when && isSaved?.current !== true && currentLocation.pathname !== nextLocation.pathname,
  );
  useEffect(() => {
    if (!when) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [when]);
  if (blocker.state !== 'blocked') return null;
  return (
    <Modal opened onClose={() => blocker.reset()} title="Leave with unsaved edits?">
      <Stack>
        <Text size="sm">
          Your edits of {what} are not saved. This tab can keep them until you come back or close it.
        </Text>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={() => blocker.reset()} data-autofocus>
            Stay
          </Button>
          <Button
            variant="outline"
            color="red"
            onClick={() => {
              onDiscard();
              blocker.proceed();
            }}
          >
            Discard them
          </Button>
          <Button onClick={() => blocker.proceed()}>Leave and keep them</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
