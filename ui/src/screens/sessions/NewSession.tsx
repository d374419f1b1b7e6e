import { Button, Group, Paper, Select, Stack, TextInput, Title } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { useNavigate } from 'react-router';
import { ErrorPanel } from '../../components/states';
import { createSession } from '../../data/chat/queries';
import { useProviders } from '../../data/queries';

/** Makes a session for a program or a chat. */
export function NewSession({ onClose }: { onClose: () => void }) {
  const [id, setId] = useState('');
  const [title, setTitle] = useState('');
  const [provider, setProvider] = useState<string | null>(null);
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const providers = useProviders();
  const navigate = useNavigate();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const session = await createSession({ id: id.trim() || null, title: title.trim() || null, provider });
      await navigate(`/sessions/${encodeURIComponent(session.id)}`);
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return (
    <Paper withBorder p="md" maw={520} component="section" aria-labelledby="new-session">
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          <Title order={2} size="h4" id="new-session">
            New session
          </Title>
          <TextInput label="Title" value={title} onChange={(event) => setTitle(event.currentTarget.value)} autoFocus />
          <TextInput
            label="Id"
            description="Part of its address for MCP clients. Left empty, it is one that cannot be guessed."
            value={id}
            onChange={(event) => setId(event.currentTarget.value)}
          />
          <Select
            label="Provider"
            data={providers.data?.providers.map(({ name }) => name) ?? []}
            value={provider}
            onChange={setProvider}
            clearable
            clearButtonProps={{ 'aria-label': 'No provider' }}
          />
          {error !== undefined && <ErrorPanel error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isBusy}>
              Make the session
            </Button>
          </Group>
        </Stack>
      </form>
    </Paper>
  );
}
