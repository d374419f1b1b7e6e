import {
  Button,
  Group,
  Modal,
  NativeSelect,
  NumberInput,
  PasswordInput,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { client, unwrap } from '../../api/client';
import { ApiError } from '../../api/problem';
import { hasKeptForm, keepForm, keptForm } from '../../components/form-draft';
import { LeaveGuard } from '../../components/LeaveGuard';
import { ErrorPanel } from '../../components/states';
import { Written } from '../../components/Written';
import { entryOf, entryShown, fieldsOf, isServerFields, keptFields } from './server-fields';
import type { ServerDeclaration, ServerFields } from './server-fields';
import { ServerTest } from './ServerTest';

interface ServerFormProps {
  /** The server that is edited; absent for a new one. */
  server?: { name: string; declared: ServerDeclaration; etag: string | null };
  onClose: () => void;
}

const FIELDS = ['/name', '/url', '/auth', '/auth/bearer', '/mode', '/tool_allowlist', '/tool_denylist'];

/** Adds an HTTP server, or edits the entry of one. A command is never taken from a page: programs are added in the file. */
export default function ServerForm({ server, onClose }: ServerFormProps) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const form = `server:${server?.name ?? ''}`;
  const first = fieldsOf(server?.name ?? '', server?.declared);
  const [wasKept] = useState(() => hasKeptForm(form));
  const [fields, setFields] = useState<ServerFields>(() => keptForm(form, isServerFields) ?? first);
  const set = (part: Partial<ServerFields>) => setFields((old) => ({ ...old, ...part }));
  const isChanged = JSON.stringify(fields) !== JSON.stringify(first);
  const isSaved = useRef(false);
  useEffect(() => {
    if (!isSaved.current) keepForm(form, isChanged ? keptFields(fields) : undefined);
  }, [form, fields, isChanged]);
  const name = fields.name.trim();
  const entry = entryOf(fields, server?.declared);
  const save = useMutation({
    mutationFn: () => {
      const header: Record<string, string> =
        server === undefined
          ? { 'If-None-Match': '*' }
          : { 'If-Match': server.etag === null ? '*' : `"${server.etag}"` };
      return unwrap(client.PUT('/api/v1/servers/{name}', { params: { path: { name }, header }, body: entry as never }));
    },
    onSuccess: async () => {
      isSaved.current = true;
      keepForm(form, undefined);
      await navigate(`/servers/${encodeURIComponent(name)}`);
      await queries.invalidateQueries();
    },
  });
  const refused = save.error instanceof ApiError ? save.error : undefined;
  const at = (...paths: string[]) => refused?.errors.find(({ path }) => paths.includes(path))?.message;
  const isTaken = server === undefined && refused?.status === 412;
  const elsewhere = refused?.errors.some(({ path }) => !FIELDS.includes(path)) !== false;
  const isProgram = server !== undefined && server.declared.url === undefined;

  function submit(event: FormEvent) {
    event.preventDefault();
    save.mutate();
  }

  return (
    <Modal opened onClose={onClose} title={server ? `Edit ${server.name}` : 'Add an HTTP server'} size="lg">
      <LeaveGuard
        when={isChanged}
        what={server ? `the server ${server.name}` : 'a new server'}
        onDiscard={() => keepForm(form, undefined)}
        isSaved={isSaved}
      />
      <form onSubmit={submit}>
        <Stack>
          {wasKept && isChanged && (
            <Group justify="space-between" gap="xs">
              <Text size="sm" role="status">
                These are your edits of before. Tokens are not kept.
              </Text>
              <Button size="compact-xs" variant="default" onClick={() => setFields(first)}>
                Start again
              </Button>
            </Group>
          )}
          {server === undefined && (
            <TextInput
              label="Name"
              description="Part of the names of its tools: name.tool"
              required
              data-autofocus
              value={fields.name}
              onChange={(event) => set({ name: event.currentTarget.value })}
              error={isTaken ? 'A server of this name is configured already' : at('/name')}
            />
          )}
          {!isProgram && (
            <>
              <TextInput
                label="URL"
                description="Where it takes MCP over HTTP"
                placeholder="https://example.com/mcp"
                required
                value={fields.url}
                onChange={(event) => set({ url: event.currentTarget.value })}
                error={at('/url')}
              />
              <PasswordInput
                label="Bearer token"
                description={
                  server?.declared.auth?.bearer !== undefined
                    ? 'Left empty, the present one stays'
                    : "Better the name of a variable of the board's environment, as ${TOKEN}: a token in clear is written to the file"
                }
                autoComplete="off"
                value={fields.token}
                onChange={(event) => set({ token: event.currentTarget.value })}
                error={at('/auth/bearer', '/auth')}
              />
            </>
          )}
          <Group grow align="flex-start">
            <NativeSelect
              label="Mode"
              description="Which of its tools are admitted"
              data={[
                ...(fields.mode === '' ? [{ value: '', label: 'as the default says' }] : []),
                { value: 'dynamic', label: 'dynamic: all that it lists' },
                { value: 'strict', label: 'strict: only configured ones' },
              ]}
              value={fields.mode}
              onChange={(event) => set({ mode: event.currentTarget.value })}
              error={at('/mode')}
            />
            <NumberInput
              label="Calls at once"
              description="For each of its tools"
              min={1}
              value={fields.instances}
              onChange={(instances) => set({ instances })}
              error={at('/default_tool_config/max_instances')}
            />
          </Group>
          <Group grow align="flex-start">
            <TextInput
              label="Only these tools"
              description="Names or patterns, with commas"
              value={fields.allow}
              onChange={(event) => set({ allow: event.currentTarget.value })}
              error={at('/tool_allowlist')}
            />
            <TextInput
              label="Without these tools"
              description="Names or patterns, with commas"
              placeholder="delete_*, drop_*"
              value={fields.deny}
              onChange={(event) => set({ deny: event.currentTarget.value })}
              error={at('/tool_denylist')}
            />
          </Group>
          <Switch
            label="The board is not ready without it"
            checked={fields.required}
            onChange={(event) => set({ required: event.currentTarget.checked })}
          />
          {isChanged && (name !== '' || fields.url !== '') && (
            <Written
              before={entryShown(name, server?.declared, '')}
              after={entryShown(name, entry, fields.token)}
              place="toolbox.mcps"
            />
          )}
          {server !== undefined && refused?.status === 412 && (
            <Text size="sm" c="var(--mantine-color-error)" role="alert">
              Somebody else has changed this entry. Close this, look at it, and open it again: your edits are kept.
            </Text>
          )}
          {refused !== undefined && refused.status !== 412 && elsewhere && <ErrorPanel error={refused} />}
          {save.isError && refused === undefined && <ErrorPanel error={save.error} />}
          {!isProgram && <ServerTest url={entry.url ?? ''} token={fields.token} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Close
            </Button>
            <Button
              type="submit"
              loading={save.isPending}
              disabled={!isChanged || name === '' || (!isProgram && fields.url.trim() === '')}
            >
              {server ? 'Save' : 'Add'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
