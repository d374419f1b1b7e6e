import { Alert, Badge, Button, Group, Loader, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconRefresh } from '@tabler/icons-react';
import { memo } from 'react';
import { Clock } from '../../components/Clock';
import { CopyButton } from '../../components/CopyButton';
import { duration } from '../../components/time';
import { isOver, type Turn, type TurnProblem } from '../../data/chat/turn';
import { timeOfTurn } from '../../data/chat/turn-id';
import type { KnownTools } from './CallCard';
import { StepView } from './StepView';

function ProblemView({ problem }: { problem: TurnProblem }) {
  return (
    <Alert color="red" variant="light" icon={<IconAlertTriangle />} title={`The turn failed (${problem.kind})`}>
      <Text size="sm">{problem.message}</Text>
      {problem.advice !== '' && (
        <Text size="sm">
          <strong>What to do:</strong> {problem.advice}
        </Text>
      )}
    </Alert>
  );
}

const ENDS: Partial<Record<Turn['phase'], string>> = {
  cancelled: 'Stopped',
  limited: 'Ended by a limit',
  lost: 'The board no longer has this turn; what it kept is shown after a reload',
};

function Cost({ turn, latencyMs }: { turn: Turn; latencyMs: number }) {
  const parts = [
    turn.usage && `${turn.usage.input_tokens} tokens in`,
    turn.usage && `${turn.usage.output_tokens} out`,
    latencyMs > 0 && duration(latencyMs),
    turn.toolsRevision !== undefined && `tools at revision ${turn.toolsRevision}`,
  ].filter(Boolean);
  return (
    <Text size="xs" c="dimmed">
      {parts.join(' · ')}
    </Text>
  );
}

interface AnswerProps {
  turn: Turn;
  latencyMs: number;
  tools: KnownTools;
  isOld: boolean;
  /** Absent while it cannot be asked for again. */
  onRetry?: () => void;
}

/** The answer of a model: its steps, how it ended and what it cost. */
export const AnswerView = memo(function AnswerView({ turn, latencyMs, tools, isOld, onRetry }: AnswerProps) {
  const isReact = turn.strategy === 'react';
  const over = isOver(turn);
  const at = timeOfTurn(turn.id);
  const text = turn.steps.flatMap((step) => (step.kind === 'text' ? [step.text] : [])).join('\n\n');
  return (
    <article
      className={isOld ? 'entry answer old' : 'entry answer'}
      aria-label={`Answer of ${turn.provider ?? 'the model'}`}
      aria-busy={!over}
    >
      <Group gap="xs" className="entry-head">
        <Text fw={600} size="sm">
          {turn.provider ?? 'Model'}
        </Text>
        {turn.model && turn.model !== turn.provider && (
          <Text size="xs" c="dimmed">
            {turn.model}
          </Text>
        )}
        {at !== undefined && <Clock at={at} />}
        {isReact && (
          <Badge className="state" variant="light" color="grape">
            ReACT
          </Badge>
        )}
        {!over && <Loader size={14} aria-label="The model answers" />}
        {ENDS[turn.phase] && (
          <Badge className="state" variant="light" color="yellow">
            {ENDS[turn.phase]}
          </Badge>
        )}
      </Group>
      <Stack gap="xs">
        {turn.steps.map((step, index) => (
          <StepView
            key={step.key}
            step={step}
            tools={tools}
            isReact={isReact}
            isOpen={!over && index === turn.steps.length - 1}
          />
        ))}
        {turn.error && <ProblemView problem={turn.error} />}
      </Stack>
      {over && (
        <Group gap="xs" className="entry-foot">
          {text !== '' && <CopyButton value={text} name="Copy the answer" />}
          {onRetry && (
            <Button size="compact-xs" variant="subtle" leftSection={<IconRefresh size={14} />} onClick={onRetry}>
              Retry
            </Button>
          )}
          <Cost turn={turn} latencyMs={latencyMs} />
        </Group>
      )}
    </article>
  );
});
