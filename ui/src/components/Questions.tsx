import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type KeyboardEvent, useState } from 'react';
import { ApiError } from '../api/problem';
import { answerQuestion, type Question, type QuestionAction, type Run } from '../data/runs';
import { type JsonObject, propertiesOf, type Schema } from './schema-form/schema';
import { SchemaForm } from './schema-form/SchemaForm';
import { ErrorPanel } from './states';

/** What the server proposes as its answer. */
const proposed = (schema: Schema): JsonObject =>
  Object.fromEntries(
    propertiesOf(schema, schema).flatMap(({ name, schema }) =>
      schema.default === undefined ? [] : [[name, schema.default as JsonObject[string]]],
    ),
  );

/** What a server asks while a call runs, as a form made of its schema. */
function QuestionForm({ run, question }: { run: Run; question: Question }) {
  const [value, setValue] = useState(() => proposed(question.schema as Schema));
  const answer = useMutation({
    mutationFn: (action: QuestionAction) =>
      answerQuestion(run, question, action, action === 'accept' ? value : undefined),
  });
  const refused = answer.error instanceof ApiError ? answer.error.errors : [];
  const server = run.tool.slice(0, run.tool.indexOf('.'));
  function onKey(event: KeyboardEvent) {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    // Not the call once more, which waits for this answer.
    event.preventDefault();
    event.stopPropagation();
    answer.mutate('accept');
  }
  return (
    <Paper withBorder p="md" component="section" aria-label={`Question of ${server}`} onKeyDown={onKey}>
      <Stack gap="sm">
        <Title order={3} size="h6">
          {server} asks
        </Title>
        <Text style={{ whiteSpace: 'pre-wrap' }}>{question.message}</Text>
        <SchemaForm
          schema={question.schema as Schema}
          value={value}
          onChange={setValue}
          errors={refused}
          empty="It only wants your consent."
        />
        <Text size="xs" c="dimmed">
          The answer goes to this server. Give it no password and no key.
        </Text>
        {answer.isError && refused.length === 0 && <ErrorPanel error={answer.error} />}
        <Group gap="xs">
          <Button size="xs" loading={answer.isPending} onClick={() => answer.mutate('accept')}>
            Answer
          </Button>
          <Button size="xs" variant="default" onClick={() => answer.mutate('decline')}>
            Say no
          </Button>
          <Button size="xs" variant="subtle" color="gray" onClick={() => answer.mutate('cancel')}>
            Leave without an answer
          </Button>
        </Group>
      </Stack>
    </Paper>
  );
}

/** The questions of a running call that wait for an answer. */
export function Questions({ run }: { run: Run }) {
  return run.questions.map((question) => (
    <QuestionForm key={`${run.id} ${question.id}`} run={run} question={question} />
  ));
}
