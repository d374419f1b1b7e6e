import { Badge, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { ErrorPanel } from '../../components/states';
import { type SessionView } from '../../data/chat/queries';
import { queryClient } from '../../data/query-client';
import { attachServer, detachServer } from '../../data/session/queries';

/** MCP servers that are attached to this session only. */
export function OwnServers({ session }: { session: SessionView }) {
  const [isOpen, setOpen] = useState(false);
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const run = async (work: Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work;
      setOpen(false);
      setName('');
      setUrl('');
      await queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey[1] === session.id });
    } catch (refused) {
      setError(refused);
    } finally {
      setBusy(false);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(attachServer(session.id, name.trim(), url.trim()));
  };
  return (
    <Stack gap="xs" mt="sm">
      {Object.entries(session.own_servers).map(([own, { url: place, state }]) => (
        <Group key={own} gap="xs">
          <Text size="sm" fw={600}>
            {own}
          </Text>
          <Text size="sm" className="mono">
            {place}
          </Text>
          <Badge className="state" variant="light" color={state === 'ready' ? 'green' : 'yellow'}>
            {state ?? 'not loaded'}
          </Badge>
          <Button
            size="compact-xs"
            variant="default"
            disabled={isBusy}
            onClick={() => void run(detachServer(session.id, own))}
          >
            Detach
          </Button>
        </Group>
      ))}
      {isOpen ? (
        <form onSubmit={submit}>
          <Group gap="xs" align="flex-end">
            <TextInput
              size="xs"
              label="Name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              w={120}
              required
            />
            <TextInput
              size="xs"
              label="URL of an MCP server"
              type="url"
              value={url}
              onChange={(event) => setUrl(event.currentTarget.value)}
              style={{ flex: '1 1 180px' }}
              required
            />
            <Button size="xs" type="submit" loading={isBusy}>
              Attach
            </Button>
            <Button size="xs" variant="default" onClick={() => setOpen(false)}>
              Cancel
            </Button>
          </Group>
        </form>
      ) : (
        <div>
          <Button size="compact-xs" variant="default" onClick={() => setOpen(true)}>
            Attach a server to this session only
          </Button>
        </div>
      )}
      {error !== undefined && <ErrorPanel error={error} />}
    </Stack>
  );
}
