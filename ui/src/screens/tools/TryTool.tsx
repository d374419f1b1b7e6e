import { Alert, Button, Group, Kbd, Paper, Progress, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconPlayerPlay, IconPlayerStop } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { client, unwrap } from '../../api/client';
import { ApiError, type FieldError } from '../../api/problem';
import type { ToolView } from '../../api/types';
import { Questions } from '../../components/Questions';
import { Result } from '../../components/Result';
import type { JsonObject } from '../../components/schema-form/schema';
import { SchemaForm } from '../../components/schema-form/SchemaForm';
import { useSearch } from '../../components/search-params';
import { StateBadge } from '../../components/StateBadge';
import { ErrorPanel, Loading } from '../../components/states';
import { duration, useNow } from '../../components/time';
import { WholeResult } from '../../components/WholeResult';
import { type Draft, draftOfText, useDraft } from '../../data/drafts';
import { cancelRun, type Run, startRun, useRun } from '../../data/runs';
import { History } from './History';
import { Snippets } from './Snippets';

const JsonEditor = lazy(() => import('../../components/editor/JsonEditor'));

/** Asks the board whether the arguments fit, without calling the tool. */
function useCheck(tool: string, draft: Draft): FieldError[] {
  const [value] = useDebouncedValue(draft.value, 300);
  const isEmpty = Object.keys(value).length === 0;
  const { data } = useQuery({
    queryKey: ['check', tool, value],
    queryFn: () =>
      unwrap(
        client.POST('/api/v1/tools/{name}/check', {
          params: { path: { name: tool } },
          body: { arguments: value as never },
        }),
      ),
    enabled: !isEmpty,
    staleTime: 60_000,
  });
  return isEmpty ? [] : (data?.errors ?? []);
}

/** What the board refused of the last call counts as long as the arguments are the same. */
function refusals(run: Run | undefined, draft: Draft): FieldError[] {
  if (!(run?.error instanceof ApiError)) return [];
  return JSON.stringify(run.arguments) === JSON.stringify(draft.value) ? run.error.errors : [];
}

function merged(first: FieldError[], second: FieldError[]): FieldError[] {
  const seen = new Set(first.map(({ path, message }) => path + message));
  return [...first, ...second.filter(({ path, message }) => !seen.has(path + message))];
}

function Running({ run }: { run: Run }) {
  const now = useNow();
  const { progress } = run;
  const share = progress?.total ? (100 * progress.progress) / progress.total : undefined;
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Group gap="xs" role="status">
          <StateBadge state="running" />
          <Text size="sm">{duration(Math.max(0, now - run.startedAt))}</Text>
          {progress && (
            <Text size="sm">
              {progress.message ?? ''} {progress.progress}
              {progress.total ? ` / ${progress.total}` : ''}
            </Text>
          )}
        </Group>
        <Button
          size="xs"
          color="red"
          variant="outline"
          leftSection={<IconPlayerStop size={14} />}
          onClick={() => cancelRun(run.tool)}
        >
          Cancel
        </Button>
      </Group>
      <Progress
        value={share ?? 100}
        animated={share === undefined}
        striped={share === undefined}
        aria-label="Progress of the call"
      />
    </Stack>
  );
}

function Outcome({ run }: { run: Run | undefined }) {
  if (run === undefined) {
    return (
      <Text size="sm" c="dimmed">
        The result shows here. Run it with the button or with <Kbd>Ctrl</Kbd> + <Kbd>Enter</Kbd>.
      </Text>
    );
  }
  return (
    <Stack gap="sm">
      {run.endedAt === undefined && <Running run={run} />}
      <Questions run={run} />
      {run.isCancelled && (
        <Alert color="gray" title="Cancelled" role="status">
          You cancelled the call after {duration((run.endedAt ?? run.startedAt) - run.startedAt)}.
        </Alert>
      )}
      {run.error !== undefined && <ErrorPanel error={run.error} />}
      {run.call && (
        <>
          <Group gap="xs" role="status" data-call={run.call.id}>
            <StateBadge state={run.call.outcome} />
            <Text size="sm">
              ran {duration(run.call.run_ms)}
              {run.call.wait_ms > 0 && `, waited ${duration(run.call.wait_ms)}`}
            </Text>
          </Group>
          <Result key={run.call.id} result={run.call.result as Record<string, unknown>} />
          {run.call.result_handle && <WholeResult key={run.call.result_handle} handle={run.call.result_handle} />}
        </>
      )}
      {run.logs.length > 0 && <pre className="output">{run.logs.join('\n')}</pre>}
    </Stack>
  );
}

/** Form and result side by side; form and JSON are two views of one draft. */
export function TryTool({ tool }: { tool: ToolView }) {
  const [draft, setDraft] = useDraft(tool.name);
  const [search, setSearch] = useSearch();
  const run = useRun(tool.name);
  const view = search.get('as') === 'json' || draft.broken !== undefined ? 'json' : 'form';
  const checked = useCheck(tool.name, draft);
  const errors = merged(checked, refusals(run, draft));
  const isRunning = run !== undefined && run.endedAt === undefined;
  const setView = (next: string) =>
    setSearch(
      (before) => {
        if (next === 'json') before.set('as', 'json');
        else before.delete('as');
        return before;
      },
      { replace: true },
    );
  const send = () => {
    if (draft.broken === undefined) void startRun(tool.name, draft.value);
  };
  return (
    <div
      className="two-panes"
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          send();
        }
      }}
    >
      <Paper withBorder p="md">
        <Stack gap="md">
          <Group justify="space-between">
            <Title order={2} size="h5">
              Arguments
            </Title>
            <SegmentedControl
              size="xs"
              aria-label="View of the arguments"
              data={[
                { value: 'form', label: 'Form' },
                { value: 'json', label: 'JSON' },
              ]}
              value={view}
              onChange={setView}
            />
          </Group>
          {view === 'form' ? (
            <SchemaForm
              schema={tool.input_schema}
              value={draft.value as JsonObject}
              onChange={(value) => setDraft({ value })}
              errors={errors}
            />
          ) : (
            <Suspense fallback={<Loading rows={4} />}>
              <JsonEditor
                label="Arguments as JSON"
                text={draft.broken ?? JSON.stringify(draft.value, null, 2)}
                onChange={(text) => {
                  // What only looks different is not a change.
                  const next = draftOfText(draft, text);
                  if (
                    next.broken !== undefined ||
                    draft.broken !== undefined ||
                    JSON.stringify(next.value) !== JSON.stringify(draft.value)
                  )
                    setDraft(next);
                }}
                onSubmit={send}
              />
              {draft.broken !== undefined && (
                <Text size="sm" c="var(--mantine-color-error)" role="alert">
                  This is not a JSON object yet. The form keeps what could last be read.
                </Text>
              )}
              {errors.map(({ path, message }) => (
                <Text key={path + message} size="sm" c="var(--mantine-color-error)">
                  {message}
                </Text>
              ))}
            </Suspense>
          )}
          <Group gap="sm">
            <Button
              leftSection={<IconPlayerPlay size={16} />}
              onClick={send}
              disabled={draft.broken !== undefined}
              loading={isRunning}
            >
              Run
            </Button>
            <Text size="xs" c="dimmed">
              <Kbd size="xs">Ctrl</Kbd> + <Kbd size="xs">Enter</Kbd>
            </Text>
            <Button variant="subtle" color="gray" size="xs" onClick={() => setDraft({ value: {} })}>
              Clear
            </Button>
          </Group>
          <Snippets tool={tool} args={draft.value} />
        </Stack>
      </Paper>
      <Stack>
        <Paper withBorder p="md">
          <Stack gap="md">
            <Title order={2} size="h5">
              Result
            </Title>
            <Outcome run={run} />
          </Stack>
        </Paper>
        <History tool={tool.name} onLoad={(value) => setDraft({ value })} />
      </Stack>
    </div>
  );
}
