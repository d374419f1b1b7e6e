import { Button, Group, Text, Textarea } from '@mantine/core';
import { IconPlayerStop, IconSend } from '@tabler/icons-react';
import { type KeyboardEvent, type ReactNode, useRef } from 'react';

interface ComposerProps {
  text: string;
  onText: (text: string) => void;
  onSend: () => void;
  /** Absent while nothing runs. */
  onStop?: () => void;
  isBusy?: boolean;
  children?: ReactNode;
}

/** Where a message is written. Enter sends it, Shift+Enter begins a line. */
export function Composer({ text, onText, onSend, onStop, isBusy, children }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const canSend = text.trim() !== '' && onStop === undefined && !isBusy;
  const key = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.nativeEvent.isComposing) return;
    if (event.shiftKey && !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (canSend) onSend();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (canSend) onSend();
        field.current?.focus();
      }}
    >
      <Textarea
        ref={field}
        aria-label="Message"
        placeholder="Say something. Enter sends, Shift+Enter begins a line."
        value={text}
        onChange={(event) => onText(event.currentTarget.value)}
        onKeyDown={key}
        autosize
        minRows={2}
        maxRows={10}
        autoFocus
      />
      <Group justify="space-between" gap="xs" mt="xs" align="flex-end">
        <div>{children}</div>
        {onStop ? (
          <Button color="red" variant="light" leftSection={<IconPlayerStop size={16} />} onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button type="submit" disabled={!canSend} loading={isBusy} leftSection={<IconSend size={16} />}>
            Send
          </Button>
        )}
      </Group>
      {onStop !== undefined && text.trim() !== '' && (
        <Text size="xs" c="dimmed">
          You can send this when the answer has ended, or stop it.
        </Text>
      )}
    </form>
  );
}
