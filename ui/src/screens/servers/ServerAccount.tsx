import { Alert, Anchor, Button, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { IconLogin } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { client, unwrap } from '../../api/client';
import type { components } from '../../api/schema';
import { Section } from '../../components/Section';
import { StateBadge } from '../../components/StateBadge';
import { ErrorPanel } from '../../components/states';

type AccountView = components['schemas']['AccountView'];

/** How often a sign-in that somebody does in another tab is asked for. */
const EVERY = 2_000;

/** The accounts of this person, at the servers where each person has one. */
export const useAccounts = () =>
  useQuery({
    queryKey: ['accounts'],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/accounts', { signal })),
    retry: false,
  });

export const needsSignIn = ({ state }: AccountView): boolean => state === 'needs_sign_in';

function SignIn({ server }: { server: string }) {
  const queries = useQueryClient();
  const path = { server };
  const begin = useMutation({
    mutationFn: () => unwrap(client.POST('/api/v1/accounts/{server}/sign-ins', { params: { path } })),
  });
  const page = begin.data;
  const followed = useQuery({
    queryKey: ['sign-in', server, page?.id],
    queryFn: async ({ signal }) => {
      const params = { path: { server, id: page?.id ?? '' } };
      const view = await unwrap(client.GET('/api/v1/accounts/{server}/sign-ins/{id}', { params, signal }));
      if (view.state === 'signed_in')
        void queries.invalidateQueries({
          predicate: ({ queryKey }) => ['accounts', 'server', 'servers', 'tools'].includes(String(queryKey[0])),
        });
      return view;
    },
    enabled: page !== undefined,
    refetchInterval: ({ state }) => (state.data === undefined || state.data.state === 'open' ? EVERY : false),
    retry: false,
  });
  const state = followed.data?.state ?? 'open';
  return (
    <Stack gap="xs" align="flex-start">
      <Button size="xs" leftSection={<IconLogin size={14} />} loading={begin.isPending} onClick={() => begin.mutate()}>
        {page === undefined ? 'Sign in' : 'Begin again'}
      </Button>
      {begin.isError && <ErrorPanel error={begin.error} />}
      {page && state === 'open' && (
        <Text size="sm" role="status">
          <Anchor href={page.url} target="_blank" rel="noreferrer" size="sm">
            Open the sign-in page
          </Anchor>
          {page.code != null && (
            <>
              {' '}
              and enter the code <strong className="mono">{page.code}</strong>
            </>
          )}
          . It works until {new Date(page.expires_at_ms).toLocaleTimeString()}; this page notices when you are done.
        </Text>
      )}
      {state === 'signed_in' && (
        <Text size="sm" role="status">
          You are signed in.
        </Text>
      )}
      {state === 'failed' && (
        <Alert color="red" variant="light" title="The sign-in failed" role="alert" py="xs">
          Begin it again. The page at the board says why it failed.
        </Alert>
      )}
      {followed.isError && state === 'open' && <ErrorPanel error={followed.error} />}
    </Stack>
  );
}

/** A token that is pasted goes to the board and stays nowhere in this page. */
function PasteToken({ server }: { server: string }) {
  const queries = useQueryClient();
  const [token, setToken] = useState('');
  const put = useMutation({
    mutationFn: () =>
      unwrap(client.PUT('/api/v1/accounts/{server}/token', { params: { path: { server } }, body: { token } as never })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['accounts'] }),
    onSettled: () => setToken(''),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    put.mutate();
  };
  return (
    <details className="fold">
      <summary>Use a token that you have</summary>
      <form onSubmit={submit}>
        <Group gap="xs" align="flex-end" mt={4}>
          <PasswordInput
            size="xs"
            label="Access token"
            autoComplete="off"
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
            className="grow"
          />
          <Button size="xs" variant="default" type="submit" disabled={token === ''} loading={put.isPending}>
            Use it
          </Button>
        </Group>
        {put.isError && <ErrorPanel error={put.error} />}
      </form>
    </details>
  );
}

function SignOut({ server }: { server: string }) {
  const queries = useQueryClient();
  const end = useMutation({
    mutationFn: () => unwrap(client.DELETE('/api/v1/accounts/{server}', { params: { path: { server } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ['accounts'] }),
  });
  return (
    <>
      <Button size="xs" variant="default" loading={end.isPending} onClick={() => end.mutate()}>
        Sign out
      </Button>
      {end.isError && <ErrorPanel error={end.error} />}
    </>
  );
}

/** The account of this person at a server: whether it is signed in, since the board calls it with that account. */
export function ServerAccount({ server }: { server: string }) {
  const account = useAccounts().data?.accounts.find((each) => each.server === server);
  if (account === undefined) return null;
  const isIn = account.state === 'active' || account.state === 'renewing' || account.state === 'automatic';
  const wanted = account.wanted_scopes ?? [];
  return (
    <Section title="Your account" actions={<StateBadge state={account.state} />}>
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          Calls of yours use your own account at this server.{' '}
          {account.issuer != null && `It is one of ${account.issuer}. `}
          {account.scopes.length > 0 && `It may: ${account.scopes.join(', ')}. `}
          {account.expires_at != null &&
            `Its token works until ${new Date(account.expires_at).toLocaleString()}${account.is_renewed ? ' and is renewed' : ''}.`}
        </Text>
        {account.reason != null && <Text size="sm">{account.reason}</Text>}
        {wanted.length > 0 && (
          <Text size="sm">The server wants more since then: {wanted.join(', ')}. Sign in again to allow it.</Text>
        )}
        {account.state !== 'automatic' && (!isIn || wanted.length > 0) && <SignIn server={server} />}
        {!isIn && <PasteToken server={server} />}
        {isIn && account.state !== 'automatic' && <SignOut server={server} />}
      </Stack>
    </Section>
  );
}
