import { Anchor, Button, Group, Paper, Select, Stack, Text, ThemeIcon, Title } from '@mantine/core';
import { IconCheck, IconPlayerPlay } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import { Link } from 'react-router';
import type { ToolView } from '../../api/types';
import { Page } from '../../components/Page';
import { Questions } from '../../components/Questions';
import { Result } from '../../components/Result';
import { firstValue, type JsonObject, propertiesOf } from '../../components/schema-form/schema';
import { SchemaForm } from '../../components/schema-form/SchemaForm';
import { Empty, ErrorPanel, QueryState } from '../../components/states';
import { StateBadge } from '../../components/StateBadge';
import { ApiError } from '../../api/problem';
import { duration } from '../../components/time';
import { readDraft, useDraft } from '../../data/drafts';
import { useServers, useTools } from '../../data/queries';
import { startRun, useHasWorked, useRun } from '../../data/runs';
import { ConnectClients } from './ConnectClients';
import { OwnServers } from './OwnServers';

function Step({
  number,
  title,
  isDone,
  children,
}: {
  number: number;
  title: string;
  isDone: boolean;
  children: ReactNode;
}) {
  return (
    <Paper
      withBorder
      p="md"
      component="section"
      aria-label={`Step ${number}: ${title}`}
      data-done={isDone || undefined}
    >
      <Group align="flex-start" wrap="nowrap">
        <ThemeIcon radius="xl" color={isDone ? 'green' : 'blue'} variant={isDone ? 'filled' : 'light'} aria-hidden>
          {isDone ? <IconCheck size={16} /> : <Text fw={700}>{number}</Text>}
        </ThemeIcon>
        <Stack gap="sm" className="grow">
          <Title order={2} size="h5">
            {title}
          </Title>
          {children}
        </Stack>
      </Group>
    </Paper>
  );
}

/** Tools that can be called without knowing anything come first. */
function suggested(tools: ToolView[]): ToolView[] {
  const need = ({ input_schema }: ToolView) =>
    propertiesOf(input_schema, input_schema).filter(({ required }) => required).length;
  const isSafe = ({ annotations }: ToolView) =>
    (annotations as { readOnlyHint?: boolean } | null)?.readOnlyHint === true;
  return tools
    .filter(({ available }) => available)
    .sort((a, b) => Number(isSafe(b)) - Number(isSafe(a)) || need(a) - need(b));
}

/** Arguments to begin with, so that the first call is one click. */
function example(tool: ToolView): JsonObject {
  const required = propertiesOf(tool.input_schema, tool.input_schema).filter((property) => property.required);
  return Object.fromEntries(
    required.map(({ name, schema }, index) => {
      const first = firstValue(schema, tool.input_schema);
      if (first === '') return [name, 'Hello'];
      return [name, first === 0 ? index + 1 : first];
    }),
  );
}

function FirstCall({ tools }: { tools: ToolView[] }) {
  const [name, setName] = useState(tools[0].name);
  const tool = tools.find((each) => each.name === name) ?? tools[0];
  const [draft, setDraft] = useDraft(tool.name);
  const run = useRun(tool.name);
  const isUntouched = Object.keys(draft.value).length === 0;
  const value = isUntouched ? example(tool) : (draft.value as JsonObject);
  const errors = run?.error instanceof ApiError ? run.error.errors : [];
  return (
    <Stack gap="sm">
      <Select
        label="Tool"
        data={tools.map((each) => each.name)}
        value={tool.name}
        searchable
        limit={50}
        allowDeselect={false}
        onChange={(next) => next !== null && setName(next)}
        maw={420}
      />
      <Text size="sm">{tool.description}</Text>
      <SchemaForm
        schema={tool.input_schema}
        value={value}
        onChange={(next) => setDraft({ value: next })}
        errors={errors}
      />
      <Group>
        <Button
          className="wraps"
          leftSection={<IconPlayerPlay size={16} />}
          loading={run !== undefined && run.endedAt === undefined}
          onClick={() => {
            if (Object.keys(readDraft(tool.name).value).length === 0) setDraft({ value });
            void startRun(tool.name, value);
          }}
        >
          Call {tool.name}
        </Button>
        <Anchor component={Link} to={`/tools/${encodeURIComponent(tool.name)}`} size="sm">
          Open its page
        </Anchor>
      </Group>
      {run !== undefined && <Questions run={run} />}
      {run?.error !== undefined && <ErrorPanel error={run.error} />}
      {run?.call && (
        <>
          <Group gap="xs" role="status" data-call={run.call.id}>
            <StateBadge state={run.call.outcome} />
            <Text size="sm">ran {duration(run.call.run_ms)}</Text>
          </Group>
          <Result key={run.call.id} result={run.call.result as Record<string, unknown>} />
        </>
      )}
    </Stack>
  );
}

function Steps({ tools }: { tools: ToolView[] }) {
  const servers = useServers().data?.servers ?? [];
  const usable = suggested(tools);
  const hasWorked = useHasWorked();
  const ready = servers.filter(({ state }) => state === 'ready').length;
  const away = servers.filter(({ state }) => state !== 'ready');
  return (
    <Stack>
      <Step number={1} title="The board runs and has tools" isDone={usable.length > 0}>
        <Text size="sm">
          {ready} of {servers.length} servers ready, {usable.length} tools to call.{' '}
          <Anchor component={Link} to="/servers" inherit>
            Servers
          </Anchor>{' '}
          ·{' '}
          <Anchor component={Link} to="/tools" inherit>
            Tools
          </Anchor>
        </Text>
        {away.map(({ name, error, hint }) => (
          <Text key={name} size="sm">
            <Anchor component={Link} to={`/servers/${encodeURIComponent(name)}`} inherit>
              {name}
            </Anchor>{' '}
            is not ready{error !== null && `: ${error}`}
            {hint !== null && (
              <>
                {' '}
                <strong>What to do:</strong> {hint}
              </>
            )}
          </Text>
        ))}
      </Step>
      <Step number={2} title="Call a tool" isDone={hasWorked}>
        {usable.length === 0 ? (
          <Empty
            title="There is no tool to call yet"
            command="switchboard --config FILE server set NAME --tool-url URL"
            action={
              <Anchor component={Link} to="/servers?add">
                Add a server
              </Anchor>
            }
          />
        ) : (
          <FirstCall tools={usable} />
        )}
      </Step>
      <Step number={3} title="Connect your own clients and servers" isDone={false}>
        <ConnectClients />
        <OwnServers />
      </Step>
    </Stack>
  );
}

export function FirstRunScreen() {
  const query = useTools();
  return (
    <Page title="Start" about="Three steps from a running board to your own clients">
      <QueryState query={query}>{({ tools }) => <Steps tools={tools} />}</QueryState>
    </Page>
  );
}
