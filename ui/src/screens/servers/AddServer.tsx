import {
  Alert,
  Button,
  Group,
  Modal,
  NativeSelect,
  NumberInput,
  PasswordInput,
  Stack,
  Switch,
  Table,
  TextInput,
} from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useNavigate } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { components } from '../../api/schema';
import { ApiError } from '../../api/problem';
import { ErrorPanel } from '../../components/states';
import { StateBadge } from '../../components/StateBadge';
import { duration } from '../../components/time';

type ServerTrial = components['schemas']['ServerTrial'];

/** Adds an HTTP server. A command is never taken from a page: programs are added in the configuration. */
export default function AddServer({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [token, setToken] = useState('');
  const [mode, setMode] = useState('dynamic');
  const [instances, setInstances] = useState<number | string>(5);
  const [required, setRequired] = useState(false);
  const entry = {
    url: url.trim(),
    mode,
    required,
    default_tool_config: { max_instances: Number(instances) || 5 },
    ...(token === '' ? {} : { auth: { bearer: token } }),
  };
  const test = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/api/v1/server-tests', {
          body: {
            url: entry.url,
            ...(token === '' ? {} : { headers: { Authorization: `Bearer ${token}` } }),
          },
        }),
      ),
  });
  const add = useMutation({
    mutationFn: () =>
      unwrap(
        client.PUT('/api/v1/servers/{name}', {
          params: { path: { name: name.trim() }, header: { 'If-None-Match': '*' } },
          body: entry as never,
        }),
      ),
    onSuccess: async () => {
      await navigate(`/servers/${encodeURIComponent(name.trim())}`);
      await queries.invalidateQueries();
    },
  });
  const refused = add.error instanceof ApiError ? add.error : undefined;
  const at = (path: string) => refused?.errors.find((error) => error.path === path)?.message;
  const isTaken = refused?.status === 412;
  const others = refused !== undefined && !isTaken && refused.errors.length === 0;

  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate();
  }

  return (
    <Modal opened onClose={onClose} title="Add an HTTP server" size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label="Name"
            description="Part of the names of its tools: name.tool"
            required
            data-autofocus
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={isTaken ? 'A server of this name is configured already' : at('/name')}
          />
          <TextInput
            label="URL"
            description="Where it takes MCP over HTTP"
            placeholder="https://example.com/mcp"
            required
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
            error={at('/url')}
          />
          <PasswordInput
            label="Bearer token"
            description="Better the name of a variable of the board's environment, as ${TOKEN}: a token in clear is written to the file"
            autoComplete="off"
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
            error={at('/auth/bearer') ?? at('/auth')}
          />
          <Group grow align="flex-start">
            <NativeSelect
              label="Mode"
              description="Which of its tools are admitted"
              data={[
                { value: 'dynamic', label: 'dynamic: all that it lists' },
                { value: 'strict', label: 'strict: only configured ones' },
              ]}
              value={mode}
              onChange={(event) => setMode(event.currentTarget.value)}
              error={at('/mode')}
            />
            <NumberInput
              label="Calls at once"
              description="For each of its tools"
              min={1}
              value={instances}
              onChange={setInstances}
              error={at('/default_tool_config/max_instances')}
            />
          </Group>
          <Switch
            label="The board is not ready without it"
            checked={required}
            onChange={(event) => setRequired(event.currentTarget.checked)}
          />
          {others && <ErrorPanel error={add.error} />}
          {test.isError && <ErrorPanel error={test.error} />}
          {test.data && <Tested answer={test.data} />}
          <Group justify="flex-end">
            <Button
              variant="default"
              loading={test.isPending}
              disabled={url.trim() === ''}
              onClick={() => test.mutate()}
            >
              Test
            </Button>
            <Button type="submit" loading={add.isPending} disabled={name.trim() === '' || url.trim() === ''}>
              Add
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function Tested({ answer }: { answer: ServerTrial }) {
  return (
    <Alert
      color={answer.ok ? 'green' : 'red'}
      variant="light"
      title={answer.ok ? `It works: ${answer.tools?.length ?? 0} tools` : 'It does not work yet'}
      role="status"
    >
      <Table fz="sm">
        <Table.Tbody>
          {answer.steps.map((step) => (
            <Table.Tr key={step.name}>
              <Table.Td>{step.name}</Table.Td>
              <Table.Td>
                <StateBadge state={step.ok ? 'ok' : 'failed'} />
              </Table.Td>
              <Table.Td>
                {step.detail} {step.hint} {step.ms != null && duration(step.ms)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Alert>
  );
}
