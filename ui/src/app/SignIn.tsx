import { Alert, Button, Code, Container, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { requestJson } from '../api/client';
import { apiKey, setApiKey } from '../api/key';
import { ApiError } from '../api/problem';
import { eventStream } from '../data/event-stream';

/** Asks for a key when the board answers 401. The key stays in this tab. */
export default function SignIn({ reason }: { reason?: string }) {
  const [key, setKey] = useState('');
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState(apiKey() === null ? undefined : reason);
  const queries = useQueryClient();

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setApiKey(key.trim());
    try {
      await requestJson('/api/v1/servers');
      await queries.resetQueries();
      eventStream.restart();
    } catch (error) {
      setApiKey(null);
      setRefusal(error instanceof ApiError ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <Container size={460} py={{ base: 'md', sm: 80 }} component="main">
      <Paper withBorder p="lg" radius="md">
        <form onSubmit={(event) => void submit(event)}>
          <Stack>
            <Title order={1} size="h3">
              Sign in to Switchboard
            </Title>
            <Text size="sm">
              This board takes only callers with an API key. The key stays in this tab until you close it or sign out.
            </Text>
            {refusal !== undefined && (
              <Alert color="red" role="alert" title="The board refused the key">
                {refusal}
              </Alert>
            )}
            <PasswordInput
              label="API key"
              value={key}
              onChange={(event) => setKey(event.currentTarget.value)}
              autoComplete="off"
              data-autofocus
              required
            />
            <Button type="submit" loading={busy} disabled={key.trim() === ''}>
              Sign in
            </Button>
            <Text size="sm" c="dimmed">
              No key? On the machine of the board: <Code>switchboard key add NAME --role admin</Code>
            </Text>
          </Stack>
        </form>
      </Paper>
    </Container>
  );
}
