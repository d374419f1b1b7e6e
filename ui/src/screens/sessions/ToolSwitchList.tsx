import { Anchor, Switch, Text } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import { Link } from 'react-router';
import { stagedState, switchTools, type ToolRow } from '../../data/session/draft';
import type { StagedChange } from './use-session-draft';

const ROW = 56;

/** The rows, of which only those in view are in the page. */
export function ToolSwitchList({ rows, change }: { rows: ToolRow[]; change: StagedChange }) {
  'use no memo';
  const place = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 8,
  });
  return (
    <div
      ref={place}
      className="switch-list"
      style={{ height: Math.min(rows.length * ROW + 2, 480) }}
      tabIndex={0}
      role="region"
      aria-label="Tools of the session"
    >
      <div style={{ height: list.getTotalSize(), position: 'relative' }}>
        {list.getVirtualItems().map((item) => {
          const row = rows[item.index];
          return (
            <div
              key={row.canonical}
              style={{
                position: 'absolute',
                top: 0,
                left: 0,
                right: 0,
                height: ROW,
                transform: `translateY(${item.start}px)`,
              }}
            >
              <Row row={row} change={change} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Row({ row, change }: { row: ToolRow; change: StagedChange }) {
  const staged = change.draft.tools?.[row.canonical];
  return (
    <div className="switch-row" data-staged={staged !== undefined || undefined} style={{ height: '100%' }}>
      <div style={{ minWidth: 0 }}>
        <Anchor component={Link} to={`/tools/${encodeURIComponent(row.canonical)}`} size="sm" fw={600} className="mono">
          {row.canonical}
        </Anchor>
        <Text size="xs" c="dimmed" truncate>
          {staged === null ? 'left to its toolsets' : row.because}
          {row.available ? '' : ' · its server is away'}
          {row.description ? ` · ${row.description}` : ''}
        </Text>
      </div>
      <Switch
        aria-label={`Tool ${row.canonical}`}
        checked={stagedState(row, change.draft)}
        onChange={(event) => {
          const isOn = event.currentTarget.checked;
          change.edit((draft) => switchTools(draft, [row], isOn));
        }}
      />
    </div>
  );
}
