import { Alert, Badge, Button, Group, Paper, Stack, Text, Textarea, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { client, unwrap } from '../../api/client';
import { ApiError } from '../../api/problem';
import type { ToolDeclarationView } from '../../api/types';
import { ErrorPanel, QueryState } from '../../components/states';
import { useRole } from '../../data/me';
import { type ArgumentRow, declarationOf, faults, moved, rowOf, rowOfServer, undeclared } from './argument-rows';
import { ArgumentFields } from './ArgumentFields';
import { useDeclaration } from './Definition';

/** What the edited declaration would make of the tool, without writing it. */
function Preview({ name, body }: { name: string; body: string }) {
  const [wanted] = useDebouncedValue(body, 400);
  const query = useQuery({
    queryKey: ['preview', name, wanted],
    queryFn: () =>
      unwrap(
        client.POST('/api/v1/tools/{name}/declaration/preview', {
          params: { path: { name } },
          body: JSON.parse(wanted) as never,
        }),
      ),
    retry: false,
    placeholderData: (before) => before,
  });
  const tokens = Object.entries((query.data?.tokens ?? {}) as Record<string, number>);
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="xs">
        What models will see
      </Title>
      {query.isError && <ErrorPanel error={query.error} />}
      {query.data && (
        <Stack gap="xs">
          <Group gap={6} role="status" aria-label="Token cost">
            {tokens.map(([provider, count]) => (
              <Badge key={provider} variant="default" tt="none" title="Tokens of this tool, estimated">
                {provider} {count}
              </Badge>
            ))}
          </Group>
          {query.data.warnings.map((warning) => (
            <Text key={warning} size="sm">
              {warning}
            </Text>
          ))}
          <pre className="output" tabIndex={0} aria-label="The resulting schema">
            {JSON.stringify(query.data.input_schema, null, 2)}
          </pre>
        </Stack>
      )}
    </Paper>
  );
}

function Editor({ view }: { view: ToolDeclarationView }) {
  const queries = useQueryClient();
  const isAdmin = useRole('admin');
  const [etag, setEtag] = useState(view.etag);
  const [base, setBase] = useState(view.declared);
  const [rows, setRows] = useState<ArgumentRow[]>(() => (view.declared?.arguments ?? []).map(rowOf));
  const [description, setDescription] = useState(view.declared?.description ?? '');
  const declaration = declarationOf(base, rows, description);
  const body = JSON.stringify(declaration);
  const isChanged =
    body !== JSON.stringify(declarationOf(base, (base?.arguments ?? []).map(rowOf), base?.description ?? ''));
  const own = faults(rows);
  const params = { path: { name: view.name } };
  const match = etag === null ? { 'If-None-Match': '*' } : { 'If-Match': `"${etag}"` };

  function take(next: ToolDeclarationView) {
    setEtag(next.etag);
    setBase(next.declared);
    setRows((next.declared?.arguments ?? []).map(rowOf));
    setDescription(next.declared?.description ?? '');
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
  const reload = useMutation({
    mutationFn: () => unwrap(client.GET('/api/v1/tools/{name}/declaration', { params })),
    onSuccess: take,
  });
  const overwrite = useMutation({
    mutationFn: () => unwrap(client.GET('/api/v1/tools/{name}/declaration', { params })),
    onSuccess: (next) => {
      setEtag(next.etag);
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
                  setRows((base?.arguments ?? []).map(rowOf));
                  setDescription(base?.description ?? '');
                  save.reset();
                }}
              >
                Undo
              </Button>
              {isChanged && <Text size="sm">Not saved yet</Text>}
            </Group>
          </Stack>
        </Paper>
      </Stack>
      <Stack>
        <Preview name={view.name} body={body} />
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
