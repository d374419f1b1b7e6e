import { Anchor, Text } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, useRef } from 'react';
import { Link } from 'react-router';
import { Sparkline } from '../../components/Sparkline';
import { useScrollPlace } from '../../components/scroll-place';
import { StateBadge } from '../../components/StateBadge';
import { duration } from '../../components/time';
import { counts, percentile, type ToolActivity } from '../../data/activity';
import type { Row } from './listed';

const ROW = 44;

function Use({ activity, now }: { activity: ToolActivity | undefined; now: number }) {
  if (activity === undefined || activity.samples.length === 0)
    return (
      <Text size="xs" c="dimmed">
        no calls yet
      </Text>
    );
  const errors = activity.samples.filter(({ isError }) => isError).length;
  const steps = counts(activity.samples, now);
  const recent = steps.reduce((sum, count) => sum + count, 0);
  return (
    <Sparkline
      values={steps}
      label={`${recent} calls in the last five minutes, ${errors} of the last ${activity.samples.length} failed`}
    />
  );
}

interface LineProps {
  row: Row;
  activity: ToolActivity | undefined;
  waiting: number;
  now: number;
}

function Line({ row, activity, waiting, now }: LineProps) {
  const samples = activity?.samples ?? [];
  const p50 = percentile(samples, 0.5);
  const p99 = percentile(samples, 0.99);
  const errors = samples.filter(({ isError }) => isError).length;
  const limit = row.tool?.limits.max_instances;
  return (
    <>
      <td>
        {row.tool ? (
          <Anchor
            component={Link}
            to={`/tools/${encodeURIComponent(row.name)}`}
            className="mono"
            underline="hover"
            data-tool={row.name}
          >
            {row.name}
          </Anchor>
        ) : (
          <span className="mono">{row.name}</span>
        )}
        <Text size="xs" c="dimmed" truncate title={row.description}>
          {row.why ?? row.description}
        </Text>
      </td>
      <td>
        <StateBadge state={row.state === 'away' ? 'unavailable' : row.state} label={row.state} />
      </td>
      <td className="wide">
        <Text size="xs">
          {activity?.inFlight ?? 0} / {limit ?? '–'}
          {waiting > 0 && ` · ${waiting} waiting`}
        </Text>
      </td>
      <td className="wide">
        <Text size="xs">{p50 === undefined || p99 === undefined ? '' : `${duration(p50)} / ${duration(p99)}`}</Text>
      </td>
      <td className="wide">
        <Text size="xs">{samples.length === 0 ? '' : `${Math.round((100 * errors) / samples.length)} %`}</Text>
      </td>
      <td className="wide">
        <Use activity={activity} now={now} />
      </td>
    </>
  );
}

interface ToolTableProps {
  rows: Row[];
  activity: Map<string, ToolActivity>;
  /** How many calls of each tool wait for a slot. */
  waiting: Map<string, number>;
  now: number;
}

/** Only the rows in sight are in the page. Arrow keys move between the tools. */
export function ToolTable({ rows, activity, waiting, now }: ToolTableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const place = useScrollPlace('tools', scroller);
  // eslint-disable-next-line react-hooks/incompatible-library
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 8,
    initialOffset: place,
  });
  const shown = list.getVirtualItems();
  const before = shown[0]?.start ?? 0;
  const after = list.getTotalSize() - (shown.at(-1)?.end ?? 0);

  function onKey(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = (event.target as HTMLElement).closest<HTMLElement>('tr[data-row]');
    if (step === undefined || row === null) return;
    event.preventDefault();
    const next = Number(row.dataset.row) + step;
    if (next < 0 || next >= rows.length) return;
    list.scrollToIndex(next);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`tr[data-row="${next}"] a`)?.focus());
  }

  return (
    <div
      className="rows"
      ref={scroller}
      style={{ height: 'calc(100dvh - 266px)', minHeight: 320 }}
      onKeyDown={onKey}
      tabIndex={0}
      role="region"
      aria-label="Tools"
    >
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            <th>Tool</th>
            <th style={{ width: 118 }}>State</th>
            <th className="wide" style={{ width: 110 }}>
              In flight
            </th>
            <th className="wide" style={{ width: 130 }}>
              p50 / p99
            </th>
            <th className="wide" style={{ width: 70 }}>
              Errors
            </th>
            <th className="wide" style={{ width: 116 }}>
              Last 5 min
            </th>
          </tr>
        </thead>
        <tbody>
          {before > 0 && (
            <tr aria-hidden>
              <td style={{ height: before }} />
            </tr>
          )}
          {shown.map(({ index }) => (
            <tr key={rows[index].name} data-row={index} aria-rowindex={index + 2} style={{ height: ROW }}>
              <Line
                row={rows[index]}
                activity={activity.get(rows[index].name)}
                waiting={waiting.get(rows[index].name) ?? 0}
                now={now}
              />
            </tr>
          ))}
          {after > 0 && (
            <tr aria-hidden>
              <td style={{ height: after }} />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}
