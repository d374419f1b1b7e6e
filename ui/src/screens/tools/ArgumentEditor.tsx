import { Alert, Button, Group, Paper, Stack, Text, Textarea, Title } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { client, unwrap } from '../../api/client';
import { ApiError } from '../../api/problem';
import type { ToolDeclarationView } from '../../api/types';
import { LeaveGuard } from '../../components/LeaveGuard';
import { ErrorPanel, QueryState } from '../../components/states';
import { Written } from '../../components/Written';
import { useRole } from '../../data/me';
import { type ArgumentRow, entryShown, faults, moved, rowOf, rowOfServer, undeclared } from './argument-rows';
import { ArgumentFields } from './ArgumentFields';
import { DeclarationPreview } from './DeclarationPreview';
import { useDeclaration } from './Definition';
import { useDeclarationDraft } from './use-declaration-draft';

function Editor({ view }: { view: ToolDeclarationView }) {
  const queries = useQueryClient();
  const isAdmin = useRole('admin');
  const draft = useDeclarationDraft(view);
  const { base, rows, description, declaration, isChanged, setRows, setDescription } = draft;
  const body = JSON.stringify(declaration);
  const own = faults(rows);
  const params = { path: { name: view.name } };
  const match: Record<string, string> =
    draft.etag === null ? { 'If-None-Match': '*' } : { 'If-Match': `"${draft.etag}"` };
  const [isAsking, setAsking] = useState(false);

  function take(next: ToolDeclarationView) {
    draft.take(next);
    queries.setQueryData(['declaration', view.name], next);
    void queries.invalidateQueries({ queryKey: ['tool', view.name] });
  }
  const save = useMutation({
    mutationFn: () =>
      unwrap(
        client.PUT('/api/v1/tools/{name}/declaration', {
          params: { ...params, header: match },
          body: declaration as never,
        }),
      ),
    onSuccess: take,
  });
  const read = () => unwrap(client.GET('/api/v1/tools/{name}/declaration', { params }));
  const remove = useMutation({
    mutationFn: async () => {
      await unwrap(client.DELETE('/api/v1/tools/{name}/declaration', { params: { ...params, header: match } }));
      return read();
    },
    onSuccess: take,
    onSettled: () => setAsking(false),
  });
  const reload = useMutation({ mutationFn: read, onSuccess: take });
  const overwrite = useMutation({
    mutationFn: read,
    onSuccess: (next) => {
      draft.setEtag(next.etag);
      save.reset();
    },
  });
  const refused = save.error instanceof ApiError ? save.error : undefined;
  const isStale = refused?.status === 412;
  const change = (index: number, part: Partial<ArgumentRow>) =>
    setRows(rows.map((row, at) => (at === index ? { ...row, ...part } : row)));
  const server = view.server;
  return (
    <div className="two-panes">
      <LeaveGuard when={isChanged} what={`the arguments of ${view.name}`} onDiscard={draft.forget} />
      <Stack>
        <Paper withBorder p="md">
          <Stack gap="md">
            <Title order={2} size="h5">
              Declared arguments
            </Title>
            <Text size="sm" c="dimmed">
              A declared argument wins over the server's. What it does not say comes from there.
            </Text>
            <Textarea
              label="Description of the tool"
              placeholder={server?.description ?? ''}
              autosize
              minRows={1}
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
            />
            {rows.length === 0 && <Text size="sm">None yet: callers see the arguments of the server.</Text>}
            {rows.map((row, index) => (
              <ArgumentFields
                key={row.id}
                row={row}
                index={index}
                count={rows.length}
                fault={own.get(index)}
                errors={(refused?.errors ?? []).filter(({ path }) => path.startsWith(`/arguments/${index}`))}
                onChange={(part) => change(index, part)}
                onMove={(to) => setRows(moved(rows, index, to))}
                onRemove={() => setRows(rows.filter((_, at) => at !== index))}
              />
            ))}
            <Group gap="xs">
              <Button
                size="xs"
                variant="default"
                leftSection={<IconPlus size={14} />}
                onClick={() => setRows([...rows, rowOf({ name: '', type: 'string', description: '' })])}
              >
                Add an argument
              </Button>
              {undeclared(server?.input_schema, rows).map(([name, schema]) => (
                <Button
                  key={name}
                  size="xs"
                  variant="subtle"
                  onClick={() => setRows([...rows, rowOfServer(name, schema)])}
                >
                  Declare {name}
                </Button>
              ))}
            </Group>
            {draft.forgotten.length > 0 && (
              <Alert color="yellow" variant="light" title="Fixed values are not kept over a reload" role="status">
                <Text size="sm">
                  They may be secrets. Type them again: {draft.forgotten.map((name) => name || 'no name').join(', ')}.
                </Text>
              </Alert>
            )}
            {isStale && (
              <Alert color="yellow" variant="light" title="Somebody else has changed this entry" role="alert">
                <Text size="sm">Your edits are still here.</Text>
                <Group gap="xs" mt="xs">
                  <Button size="xs" variant="default" loading={reload.isPending} onClick={() => reload.mutate()}>
                    Take theirs
                  </Button>
                  <Button size="xs" variant="default" loading={overwrite.isPending} onClick={() => overwrite.mutate()}>
                    Keep mine, and save again
                  </Button>
                </Group>
              </Alert>
            )}
            {refused !== undefined && !isStale && <ErrorPanel error={refused} />}
            {remove.isError && <ErrorPanel error={remove.error} />}
            {save.isSuccess && !isChanged && (
              <Alert color="green" variant="light" py="xs" role="status">
                Saved. It is in force for everybody.
              </Alert>
            )}
            <Group gap="sm">
              <Button
                onClick={() => save.mutate()}
                loading={save.isPending}
                disabled={!isChanged || own.size > 0 || !isAdmin}
                title={isAdmin ? undefined : 'This needs the role admin'}
              >
                Save
              </Button>
              <Button
                variant="default"
                disabled={!isChanged}
                onClick={() => {
                  draft.discard();
                  save.reset();
                }}
              >
                Undo
              </Button>
              {isChanged && <Text size="sm">Not saved yet</Text>}
              {isAdmin && base !== null && !isAsking && (
                <Button variant="subtle" color="red" onClick={() => setAsking(true)}>
                  Remove the entry
                </Button>
              )}
              {isAsking && (
                <>
                  <Button color="red" loading={remove.isPending} onClick={() => remove.mutate()}>
                    Remove it for everybody
                  </Button>
                  <Button variant="default" onClick={() => setAsking(false)}>
                    Keep it
                  </Button>
                </>
              )}
            </Group>
          </Stack>
        </Paper>
      </Stack>
      <Stack>
        {(isChanged || isAsking) && (
          <Written
            before={entryShown(view.name, base)}
            after={isAsking ? undefined : entryShown(view.name, declaration)}
            place="toolbox.tools"
          />
        )}
        <DeclarationPreview name={view.name} body={body} />
        <Paper withBorder p="md">
          <Title order={2} size="h5" mb="xs">
            What the server says
          </Title>
          {server === null ? (
            <Text size="sm">{view.absent?.message ?? 'The server does not list this tool now.'}</Text>
          ) : (
            <pre className="output" tabIndex={0} aria-label="The schema of the server">
              {JSON.stringify(server.input_schema, null, 2)}
            </pre>
          )}
        </Paper>
      </Stack>
    </div>
  );
}

export default function ArgumentEditor({ name }: { name: string }) {
  const query = useDeclaration(name);
  return <QueryState query={query}>{(view) => <Editor view={view} />}</QueryState>;
}
