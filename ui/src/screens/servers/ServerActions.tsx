import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { IconPencil, IconPlugConnected, IconRefresh, IconTrash } from '@tabler/icons-react';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useNavigate } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { ServerDetail } from '../../api/types';
import { hasKeptForm } from '../../components/form-draft';
import { useSearch } from '../../components/search-params';
import { ErrorPanel } from '../../components/states';
import { useRole } from '../../data/me';
import type { ServerDeclaration } from './server-fields';

const ServerForm = lazy(() => import('./ServerForm'));

function RemoveDialog({ server, onClose }: { server: ServerDetail; onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () =>
      unwrap(
        client.DELETE('/api/v1/servers/{name}', {
          params: {
            path: { name: server.name },
            header: { 'If-Match': server.etag === null ? '*' : `"${server.etag}"` },
          },
        }),
      ),
    onSuccess: async () => {
      await navigate('/servers');
      await queries.invalidateQueries();
    },
  });
  return (
    <Modal opened onClose={onClose} title={`Remove ${server.name}?`}>
      <Stack>
        <Text size="sm">
          Its entry is taken out of the configuration file, and its {server.tools} tools are gone for everybody. Running
          calls are ended.
        </Text>
        {remove.isError && <ErrorPanel error={remove.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Keep it
          </Button>
          <Button color="red" loading={remove.isPending} onClick={() => remove.mutate()}>
            Remove it
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** Reconnect, read the lists again, edit and remove. */
export function ServerActions({ server }: { server: ServerDetail }) {
  const queries = useQueryClient();
  const isAdmin = useRole('admin');
  const [search, setSearch] = useSearch();
  const [isRemoving, setRemoving] = useState(false);
  const params = { path: { name: server.name } };
  const onSettled = () =>
    queries.invalidateQueries({
      predicate: ({ queryKey }) => ['server', 'servers', 'server-log'].includes(String(queryKey[0])),
    });
  const reconnect = useMutation({
    mutationFn: () => unwrap(client.POST('/api/v1/servers/{name}/reconnect', { params })),
    onSettled,
  });
  const refresh = useMutation({
    mutationFn: () => unwrap(client.POST('/api/v1/servers/{name}/refresh', { params })),
    onSettled,
  });
  const mayEdit = isAdmin && server.declared !== null;
  const error = reconnect.error ?? refresh.error;
  return (
    <Stack gap="xs" align="flex-end">
      <Group gap="xs">
        <Button
          variant="default"
          leftSection={<IconRefresh size={16} />}
          loading={refresh.isPending}
          onClick={() => refresh.mutate()}
          title="Reads its lists of tools, prompts and resources again"
        >
          Refresh
        </Button>
        <Button
          variant="default"
          leftSection={<IconPlugConnected size={16} />}
          loading={reconnect.isPending}
          onClick={() => reconnect.mutate()}
        >
          Reconnect
        </Button>
        {mayEdit && (
          <>
            <Button
              variant="default"
              leftSection={<IconPencil size={16} />}
              onClick={() => setSearch({ edit: '' }, { replace: true })}
            >
              {hasKeptForm(`server:${server.name}`) ? 'Edit (not saved)' : 'Edit'}
            </Button>
            <Button
              variant="outline"
              color="red"
              leftSection={<IconTrash size={16} />}
              onClick={() => setRemoving(true)}
            >
              Remove
            </Button>
          </>
        )}
      </Group>
      {refresh.isSuccess && (
        <Text size="sm" role="status">
          Its lists are being read.
        </Text>
      )}
      {error !== null && <ErrorPanel error={error} />}
      {isRemoving && <RemoveDialog server={server} onClose={() => setRemoving(false)} />}
      {search.has('edit') && mayEdit && (
        <Suspense fallback={null}>
          <ServerForm
            server={{ name: server.name, declared: server.declared as ServerDeclaration, etag: server.etag }}
            onClose={() => setSearch({}, { replace: true })}
          />
        </Suspense>
      )}
    </Stack>
  );
}
