import { Alert, Group, Stack, Text } from '@mantine/core';
import { IconLogin } from '@tabler/icons-react';
import type { ServerDetail } from '../../api/types';
import { CopyButton } from '../../components/CopyButton';
import { useAccounts } from './ServerAccount';

/** Whether the trouble of a server is that nobody has signed in. */
function isSignedOut({ error, hint, declared }: ServerDetail): boolean {
  const words = `${error ?? ''} ${hint ?? ''}`;
  const auth = (declared as { auth?: { oauth?: unknown } } | null)?.auth;
  return /sign[ -]?in|auth login|401|unauthori[sz]ed/i.test(words) || (auth?.oauth !== undefined && error !== null);
}

/** How the board itself is signed in at a server that all callers share. Own accounts have a part of their own. */
export function SignInAtServer({ server }: { server: ServerDetail }) {
  const accounts = useAccounts();
  const isPersonal = accounts.data?.accounts.some((each) => each.server === server.name) === true;
  if (accounts.isPending || isPersonal || !isSignedOut(server)) return null;
  const command = `switchboard auth login ${server.name}`;
  return (
    <Alert color="blue" variant="light" title="Sign in at this server" icon={<IconLogin />}>
      <Stack gap="xs" align="flex-start">
        <Text size="sm">The board uses one account here for everybody. Sign in on the machine of the board:</Text>
        <Group gap="xs">
          <span className="mono">{command}</span>
          <CopyButton value={command} name="Copy the command" />
        </Group>
      </Stack>
    </Alert>
  );
}
