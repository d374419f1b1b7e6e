import { ActionIcon, Button, Checkbox, Group, Stack, Text, Textarea } from '@mantine/core';
import { IconPencil } from '@tabler/icons-react';
import { memo, useState } from 'react';
import { Clock } from '../../components/Clock';
import type { Entry } from '../../data/chat/conversation';
import { Parts } from './Parts';

export interface Rewrite {
  index: number;
  text: string;
  /** Whether the conversation is changed, too, or only what the model sees in this turn. */
  persist: boolean;
}

interface UserMessageProps {
  entry: Extract<Entry, { index: number }>;
  /** When it was said, where that is known. */
  at?: number;
  /** How many messages come after it. */
  after: number;
  /** Absent while a turn runs. */
  onRewrite?: (rewrite: Rewrite) => void;
}

function Editor(props: UserMessageProps & { onClose: () => void }) {
  const { entry, after, onRewrite, onClose } = props;
  const [text, setText] = useState(entry.text);
  const [persist, setPersist] = useState(true);
  const send = () => {
    if (text.trim() === '' || onRewrite === undefined) return;
    onRewrite({ index: entry.index, text, persist });
    onClose();
  };
  return (
    <Stack gap="xs">
      <Textarea
        label="Write it again"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        autosize
        minRows={2}
        maxRows={12}
        data-autofocus
        autoFocus
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
          if (event.key === 'Escape') onClose();
        }}
      />
      <Text size="sm">
        The model sees the conversation up to here and the new text.{' '}
        {after > 0 && `It does not see the ${after} ${after === 1 ? 'message' : 'messages'} that came after.`}
      </Text>
      <Checkbox
        label="Change the conversation, too"
        description={
          persist
            ? 'The old text and what came after it are removed.'
            : 'The old text stays, the new one is added at the end, and later turns see both.'
        }
        checked={persist}
        onChange={(event) => setPersist(event.currentTarget.checked)}
      />
      <Group gap="xs">
        <Button size="xs" onClick={send} disabled={text.trim() === '' || onRewrite === undefined}>
          Send again
        </Button>
        <Button size="xs" variant="default" onClick={onClose}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}

/** What a person said, with a way to write it again. */
export const UserMessage = memo(function UserMessage(props: UserMessageProps) {
  const { entry, at, onRewrite } = props;
  const [isEdited, setEdited] = useState(false);
  const who = entry.kind === 'user' ? 'You' : 'System';
  return (
    <article className="entry user" aria-label={entry.kind === 'user' ? 'Your message' : 'System message'}>
      <Group gap="xs" className="entry-head" justify="space-between">
        <Group gap="xs">
          <Text fw={600} size="sm">
            {who}
          </Text>
          {at !== undefined && <Clock at={at} />}
        </Group>
        {entry.kind === 'user' && onRewrite && !isEdited && (
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="Edit and send again"
            title="Edit and send again"
            onClick={() => setEdited(true)}
          >
            <IconPencil size={16} />
          </ActionIcon>
        )}
      </Group>
      {isEdited ? <Editor {...props} onClose={() => setEdited(false)} /> : <div className="plain">{entry.text}</div>}
      {entry.others.length > 0 && <Parts parts={entry.others} />}
    </article>
  );
});
