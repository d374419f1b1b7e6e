import { Anchor, Badge, Group, Loader, Progress, Text } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconPencil, IconPlayerStop } from '@tabler/icons-react';
import { Link } from 'react-router';
import { duration, useNow } from '../../components/time';
import { textOf } from '../../data/chat/conversation';
import type { CallStep } from '../../data/chat/turn';
import { LongText, Parts } from './Parts';

/** What is known of a tool by the name that the model sees. */
export interface KnownTool {
  canonical: string;
  server: string;
  tool: string;
}
export type KnownTools = ReadonlyMap<string, KnownTool>;

const STATES = {
  writing: { word: 'being written', color: 'gray', icon: <IconPencil size={14} /> },
  running: { word: 'runs', color: 'blue', icon: <Loader size={12} /> },
  done: { word: 'done', color: 'green', icon: <IconCheck size={14} /> },
  failed: { word: 'failed', color: 'red', icon: <IconAlertTriangle size={14} /> },
  abandoned: { word: 'no result', color: 'yellow', icon: <IconPlayerStop size={14} /> },
};

function Elapsed({ since }: { since: number }) {
  const now = useNow();
  return <>{duration(Math.max(0, now - since))}</>;
}

function preview(call: CallStep): string {
  if (call.state === 'writing') return call.written;
  const text = call.content === undefined ? '' : textOf(call.content);
  if (text !== '') return text;
  if (call.structured !== undefined && call.structured !== null) return JSON.stringify(call.structured);
  return call.arguments === undefined ? '' : JSON.stringify(call.arguments);
}

/** At most two places, as nobody reads more. */
const short = (value: number): string => String(Math.round(value * 100) / 100);

function CallProgress({ call }: { call: CallStep }) {
  if (call.state !== 'running' || call.progress === undefined) return null;
  const { progress, total, message } = call.progress;
  const share = total ? Math.min(100, (100 * progress) / total) : undefined;
  return (
    <div className="call-progress">
      <Progress
        value={Math.round(share ?? 100)}
        animated={share === undefined}
        size="sm"
        aria-label={`Progress of ${call.name}`}
      />
      <Text size="xs">
        {total ? `${short(progress)} / ${short(total)} (${Math.round(share ?? 0)} %)` : short(progress)}
        {message ? ` · ${message}` : ''}
      </Text>
    </div>
  );
}

/** A tool call: what is asked, how far it is and what came of it. The result is folded. */
export function CallCard({ call, tools, isReact }: { call: CallStep; tools: KnownTools; isReact: boolean }) {
  const state = STATES[call.state];
  const known = tools.get(call.name);
  const args = call.arguments === undefined ? call.written : JSON.stringify(call.arguments, null, 2);
  return (
    <div className="call" data-state={call.state}>
      <details>
        <summary>
          <Badge className="state" color={state.color} variant="light" leftSection={state.icon}>
            {isReact ? `action ${state.word}` : state.word}
          </Badge>{' '}
          <span className="mono call-name">{known?.tool ?? call.name}</span>{' '}
          <Text span size="xs" c="dimmed">
            {known ? `${known.server} · ` : ''}
            {call.state === 'running' && call.startedAt !== undefined ? (
              <Elapsed since={call.startedAt} />
            ) : (
              call.latencyMs !== undefined && call.latencyMs !== null && duration(call.latencyMs)
            )}
          </Text>{' '}
          <span className="call-preview mono">{preview(call).slice(0, 200)}</span>
        </summary>
        <div className="call-body">
          <Group gap="xs" justify="space-between">
            <Text size="xs" c="dimmed">
              Arguments
            </Text>
            {known && (
              <Anchor component={Link} to={`/tools/${encodeURIComponent(known.canonical)}`} size="xs">
                Open {known.canonical}
              </Anchor>
            )}
          </Group>
          <LongText text={args} name="Arguments" />
          {call.content !== undefined && (
            <>
              <Text size="xs" c="dimmed">
                {call.state === 'failed' ? 'Error' : 'Result'}
              </Text>
              <Parts parts={call.content} structured={call.structured} />
            </>
          )}
          {call.observation !== undefined && (
            <>
              <Text size="xs" c="dimmed">
                Observation: what the model reads
              </Text>
              <LongText text={call.observation} name="Observation" />
            </>
          )}
          {call.state === 'abandoned' && (
            <Text size="sm">The turn ended before the result came. It may have taken effect.</Text>
          )}
        </div>
      </details>
      <CallProgress call={call} />
    </div>
  );
}
