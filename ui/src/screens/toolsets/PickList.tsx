import { Checkbox, Text } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import { TokenBar } from '../../components/TokenBar';
import type { Tool } from '../../data/toolsets/compose';

const ROW = 52;

interface PickListProps {
  tools: Tool[];
  costs: ReadonlyMap<string, number>;
  chosen: ReadonlySet<string>;
  onPick: (name: string, isOn: boolean) => void;
}

/** Tools to choose from, of which only those in view are in the page. */
export function PickList({ tools, costs, chosen, onPick }: PickListProps) {
  'use no memo';
  const place = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library
  const list = useVirtualizer({
    count: tools.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 8,
  });
  if (tools.length === 0) return <Text size="sm">No tool matches.</Text>;
  const most = Math.max(1, ...tools.map(({ name }) => costs.get(name) ?? 0));
  return (
    <div
      ref={place}
      className="pick-list"
      style={{ height: Math.min(tools.length * ROW + 2, 320) }}
      tabIndex={0}
      role="region"
      aria-label="Tools to choose from"
    >
      <div style={{ height: list.getTotalSize(), position: 'relative' }}>
        {list.getVirtualItems().map((item) => {
          const tool = tools[item.index];
          return (
            <div key={tool.name} className="pick" style={{ height: ROW, transform: `translateY(${item.start}px)` }}>
              <Checkbox
                label={
                  <>
                    <span className="mono">{tool.name}</span>
                    <Text span size="xs" c="dimmed" lineClamp={1}>
                      {tool.description}
                    </Text>
                  </>
                }
                checked={chosen.has(tool.name)}
                onChange={(event) => onPick(tool.name, event.currentTarget.checked)}
              />
              <TokenBar tokens={costs.get(tool.name) ?? 0} most={most} isExact={false} label={`Cost of ${tool.name}`} />
            </div>
          );
        })}
      </div>
    </div>
  );
}
