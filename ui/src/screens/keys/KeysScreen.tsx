import { Alert, Button, Group, Modal, NativeSelect, Paper, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { client, unwrap } from '../../api/client';
import { setApiKey } from '../../api/key';
import { ApiError } from '../../api/problem';
import type { KeyView, NewKeyView } from '../../api/types';
import { Ago } from '../../components/Ago';
import { CopyButton } from '../../components/CopyButton';
import { Page } from '../../components/Page';
import { useSearch } from '../../components/search-params';
import { StateBadge } from '../../components/StateBadge';
import { Empty, ErrorPanel, QueryState } from '../../components/states';
import { eventStream } from '../../data/event-stream';
import { useMe } from '../../data/me';

/** Makes a key. It is shown once, here, and kept nowhere in this page. */
function NewKey({ onMade, onClose }: { onMade: (key: NewKeyView) => void; onClose: () => void }) {
  const queries = useQueryClient();
  const isOpen = useMe().data?.access === 'open';
  const [name, setName] = useState('');
  const [role, setRole] = useState(isOpen ? 'admin' : 'client');
  const [user, setUser] = useState('');
  const [expires, setExpires] = useState('');
  const make = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/api/v1/keys', {
          body: { name: name.trim(), role, user: user.trim() || null, expires: expires || null } as never,
        }),
      ),
    onSuccess: async (key) => {
      if (isOpen) {
        // The first key closes the board, for this tab too: it goes on with the key that it has just made.
        setApiKey(key.key);
        eventStream.restart();
        await queries.invalidateQueries({ queryKey: ['me'] });
      }
      onMade(key);
      await queries.invalidateQueries({ queryKey: ['keys'] });
    },
  });
  const refused = make.error instanceof ApiError ? make.error : undefined;
  const at = (path: string) => refused?.errors.find((error) => error.path === path)?.message;
  function submit(event: FormEvent) {
    event.preventDefault();
    make.mutate();
  }
  return (
    <Modal opened onClose={onClose} title="Make a key" closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label="Name"
            required
            data-autofocus
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={at('/name')}
          />
          <NativeSelect
            label="Role"
            data={[
              { value: 'client', label: 'client: uses tools and own sessions' },
              { value: 'operator', label: 'operator: also sees the calls of others and the configuration' },
              { value: 'admin', label: 'admin: also changes servers, tools and keys' },
            ]}
            value={role}
            onChange={(event) => setRole(event.currentTarget.value)}
          />
          <TextInput
            label="Person"
            description="Keys with one label belong to one person"
            value={user}
            onChange={(event) => setUser(event.currentTarget.value)}
            error={at('/user')}
          />
          <NativeSelect
            label="Valid for"
            data={[
              { value: '', label: 'until it is revoked' },
              { value: '1d', label: 'a day' },
              { value: '30d', label: '30 days' },
              { value: '90d', label: '90 days' },
              { value: '1y', label: 'a year' },
            ]}
            value={expires}
            onChange={(event) => setExpires(event.currentTarget.value)}
            error={at('/expires')}
          />
          {isOpen && role !== 'admin' && (
            <Alert color="yellow" variant="light">
              From the first key on, only callers with a key get in. Make an admin key first, or this page can no longer
              make others.
            </Alert>
          )}
          {refused !== undefined && refused.errors.length === 0 && <ErrorPanel error={refused} />}
          <Button type="submit" loading={make.isPending} disabled={name.trim() === ''}>
            Make it
          </Button>
        </Stack>
      </form>
    </Modal>
  );
}

function Access({ access }: { access: KeyView['access'] }) {
  const parts = [
    access.toolsets != null && `toolsets ${access.toolsets.join(', ') || 'none'}`,
    access.tools != null && `tools ${access.tools.join(', ')}`,
    (access.deny ?? []).length > 0 && `without ${access.deny?.join(', ')}`,
    access.readonly === true && 'read-only',
    access.rate != null && access.rate,
  ].filter(Boolean);
  return <Text size="xs">{parts.length === 0 ? 'everything' : parts.join(' · ')}</Text>;
}

function Row({ entry }: { entry: KeyView }) {
  const queries = useQueryClient();
  const [isAsking, setAsking] = useState(false);
  const revoke = useMutation({
    mutationFn: () => unwrap(client.DELETE('/api/v1/keys/{id}', { params: { path: { id: entry.id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ['keys'] }),
  });
  const isOver = entry.revoked_at !== null;
  return (
    <Table.Tr data-key={entry.name}>
      <Table.Td>
        <span className="mono">{entry.name}</span>
        {entry.user !== null && (
          <Text size="xs" c="dimmed">
            {entry.user}
          </Text>
        )}
      </Table.Td>
      <Table.Td>{entry.role}</Table.Td>
      <Table.Td>
        <StateBadge state={entry.state} />
      </Table.Td>
      <Table.Td>
        <Access access={entry.access} />
      </Table.Td>
      <Table.Td>{entry.last_used_at === null ? 'never' : <Ago at={entry.last_used_at} inherit />}</Table.Td>
      <Table.Td>{entry.expires_at === null ? 'no' : new Date(entry.expires_at).toLocaleDateString()}</Table.Td>
      <Table.Td>
        {!isOver &&
          (isAsking ? (
            <Group gap={4} wrap="nowrap">
              <Button size="compact-xs" color="red" loading={revoke.isPending} onClick={() => revoke.mutate()}>
                Revoke {entry.name}
              </Button>
              <Button size="compact-xs" variant="default" onClick={() => setAsking(false)}>
                Keep
              </Button>
            </Group>
          ) : (
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Revoke ${entry.name}`}
              onClick={() => setAsking(true)}
            >
              Revoke
            </Button>
          ))}
        {revoke.isError && <ErrorPanel error={revoke.error} />}
      </Table.Td>
    </Table.Tr>
  );
}

export function KeysScreen() {
  const [search, setSearch] = useSearch();
  const isMaking = search.has('new');
  const setMaking = (isMaking: boolean) => setSearch(isMaking ? { new: '' } : {});
  const [made, setMade] = useState<NewKeyView | undefined>();
  const query = useQuery({
    queryKey: ['keys'],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/keys', { signal })),
  });
  const make = (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setMaking(true)}>
      Make a key
    </Button>
  );
  return (
    <Page title="Keys" about="Who may call this board" actions={make}>
      {isMaking && (
        <NewKey
          onClose={() => setMaking(false)}
          onMade={(key) => {
            setMade(key);
            setMaking(false);
          }}
        />
      )}
      {made && (
        <Alert
          color="green"
          variant="light"
          title={`The key ${made.name}`}
          withCloseButton
          closeButtonLabel="Hide the key"
          onClose={() => setMade(undefined)}
          role="status"
        >
          <Text size="sm">
            It is shown only now. From its first key on, a board takes only callers with a key; this tab uses the first
            one.
          </Text>
          <Group gap="xs" mt="xs">
            <Paper withBorder px="sm" py={4} className="mono" style={{ overflowWrap: 'anywhere' }}>
              {made.key}
            </Paper>
            <CopyButton value={made.key} label="Copy the key" />
          </Group>
        </Alert>
      )}
      <QueryState query={query}>
        {({ keys }) =>
          keys.length === 0 ? (
            <Empty title="No keys yet" action={make}>
              Without keys, every program on this machine may use the board. The first key closes it for all others:
              make an admin key first, and sign in with it.
            </Empty>
          ) : (
            <div className="wide-table" tabIndex={0} role="region" aria-label="Keys">
              <Title order={2} size="h5" mb="xs">
                {keys.length} {keys.length === 1 ? 'key' : 'keys'}
              </Title>
              <Table fz="sm">
                <Table.Thead>
                  <Table.Tr>
                    {['Name', 'Role', 'State', 'May use', 'Last used', 'Expires', 'Action'].map((title) => (
                      <Table.Th key={title}>{title}</Table.Th>
                    ))}
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {keys.map((entry) => (
                    <Row key={entry.id} entry={entry} />
                  ))}
                </Table.Tbody>
              </Table>
            </div>
          )
        }
      </QueryState>
    </Page>
  );
}
