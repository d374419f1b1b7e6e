import { Anchor, Group, SegmentedControl, Text, Title } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import { TokenBar } from '../../components/TokenBar';
import { SearchField } from '../../components/SearchField';
import { Empty } from '../../components/states';
import { isExact, matchingRows, type Rendering, type Row } from '../../data/renderings/renderings';

interface ToolTableProps {
  renderings: Rendering[];
  rows: Row[];
  text: string;
  only: string;
  chosen?: string;
  onText: (text: string) => void;
  onOnly: (only: string) => void;
  onChoose: (name: string) => void;
}

/** The tools with their cost for each provider. */
export function ToolTable(props: ToolTableProps) {
  const { rows, text, only, onText, onOnly } = props;
  const found = matchingRows(rows, text, only);
  return (
    <section aria-labelledby="rendered-title">
      <Title order={2} size="h5" id="rendered-title" mb="xs">
        Tools
      </Title>
      <Group gap="sm" mb="xs">
        <SearchField
          aria-label="Search tools"
          placeholder="Search tools"
          value={text}
          onChange={onText}
          style={{ flex: '1 1 180px' }}
        />
        <SegmentedControl
          transitionDuration={0}
          aria-label="Which tools"
          value={only}
          onChange={onOnly}
          data={[
            { value: '', label: 'All' },
            { value: 'rewritten', label: 'Rewritten' },
            { value: 'missing', label: 'Not shown' },
          ]}
        />
      </Group>
      <Text size="sm" role="status" mb={4}>
        {found.length} of {rows.length} match
      </Text>
      {found.length === 0 ? (
        <Empty title={rows.length === 0 ? 'This session has no tools' : 'No tool matches'} />
      ) : (
        <Rows {...props} found={found} />
      )}
    </section>
  );
}

const ROW = 48;

function Rows({ renderings, found, chosen, onChoose }: ToolTableProps & { found: Row[] }) {
  'use no memo';
  const place = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library
  const list = useVirtualizer({
    count: found.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 10,
  });
  const most = Math.max(1, ...found.map((row) => row.most));
  const gridTemplateColumns = `minmax(150px, 1.4fr) ${renderings.map(() => 'minmax(120px, 1fr)').join(' ')}`;
  const minWidth = 170 + renderings.length * 132;
  return (
    <div
      ref={place}
      className="rendering-grid"
      style={{ height: Math.min(found.length * ROW + 40, 520) }}
      tabIndex={0}
      role="region"
      aria-label="Cost of each tool"
    >
      <div className="rendering-row head" style={{ gridTemplateColumns, minWidth }}>
        <span>Tool</span>
        {renderings.map(({ provider }) => (
          <span key={provider}>{provider}</span>
        ))}
      </div>
      <div style={{ height: list.getTotalSize(), position: 'relative', minWidth }}>
        {list.getVirtualItems().map((item) => {
          const row = found[item.index];
          return (
            <div
              key={row.name}
              className="rendering-row"
              data-chosen={row.name === chosen || undefined}
              style={{
                gridTemplateColumns,
                position: 'absolute',
                left: 0,
                right: 0,
                height: ROW,
                transform: `translateY(${item.start}px)`,
              }}
            >
              <Anchor
                component="button"
                type="button"
                className="mono rendering-name"
                ta="left"
                onClick={() => onChoose(row.name)}
              >
                {row.name}
              </Anchor>
              {renderings.map((rendering) => (
                <CellView key={rendering.provider} row={row} rendering={rendering} most={most} />
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function CellView({ row, rendering, most }: { row: Row; rendering: Rendering; most: number }) {
  const cell = row.cells[rendering.provider];
  const missing = row.missing[rendering.provider];
  if (cell === undefined) {
    return (
      <Text size="xs" c="dimmed" title={missing?.reason}>
        {missing?.kind ?? 'not shown'}
      </Text>
    );
  }
  return (
    <div>
      <TokenBar tokens={cell.tokens} most={most} isExact={isExact(rendering)} label={rendering.provider} />
      {cell.rewrites.length > 0 && (
        <Text size="xs" c="dimmed">
          {cell.rewrites.length} {cell.rewrites.length === 1 ? 'rewrite' : 'rewrites'}
        </Text>
      )}
    </div>
  );
}
