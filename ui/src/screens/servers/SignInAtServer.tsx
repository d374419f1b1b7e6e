import { Alert, Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { IconLogin } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { client, unwrap } from '../../api/client';
import type { ServerDetail } from '../../api/types';
import { CopyButton } from '../../components/CopyButton';
import { ErrorPanel } from '../../components/states';

/** Whether the trouble of a server is that nobody has signed in. */
function needsSignIn({ error, hint, declared }: ServerDetail): boolean {
  const words = `${error ?? ''} ${hint ?? ''}`;
  const auth = (declared as { auth?: { oauth?: unknown } } | null)?.auth;
  return /sign[ -]?in|auth login|401|unauthori[sz]ed/i.test(words) || auth?.oauth !== undefined;
}

/** Begins a sign-in where the server wants one. The page of the authorization server opens in a tab of its own. */
export function SignInAtServer({ server }: { server: ServerDetail }) {
  const begin = useMutation({
    mutationFn: () =>
      unwrap(client.POST('/api/v1/accounts/{server}/sign-ins', { params: { path: { server: server.name } } })),
  });
  if (!needsSignIn(server)) return null;
  const command = `switchboard auth login ${server.name}`;
  return (
    <Alert color="blue" variant="light" title="Sign in at this server" icon={<IconLogin />}>
      <Stack gap="xs" align="flex-start">
        <Group gap="xs">
          <Button size="xs" loading={begin.isPending} onClick={() => begin.mutate()}>
            Begin the sign-in
          </Button>
          <Text size="sm">
            or on the command line: <span className="mono">{command}</span>
          </Text>
          <CopyButton value={command} name="Copy the command" />
        </Group>
        {begin.isError && <ErrorPanel error={begin.error} />}
        {begin.data && (
          <Text size="sm">
            <Anchor href={begin.data.url} target="_blank" rel="noreferrer">
              Open the page
            </Anchor>
            {begin.data.code != null && (
              <>
                {' '}
                and enter the code <strong className="mono">{begin.data.code}</strong>
              </>
            )}
            . It works until {new Date(begin.data.expires_at_ms).toLocaleTimeString()}.
          </Text>
        )}
      </Stack>
    </Alert>
  );
}
