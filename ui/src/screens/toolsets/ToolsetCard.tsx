import { Anchor, Text } from '@mantine/core';
import { Link } from 'react-router';
import { TokenBar } from '../../components/TokenBar';
import type { CostedToolset } from '../../data/toolsets/compose';
import { SessionSwitch } from './SessionSwitch';

interface ToolsetCardProps {
  toolset: CostedToolset;
  costs: ReadonlyMap<string, number>;
  most: number;
  session?: string;
  isOpen: boolean;
  onOpen: (isOpen: boolean) => void;
}

/** One toolset: its cost, its switch in the chosen session, and its tools. */
export function ToolsetCard({ toolset, costs, most, session, isOpen, onOpen }: ToolsetCardProps) {
  const largest = Math.max(1, ...toolset.members.map((name) => costs.get(name) ?? 0));
  return (
    <article className="toolset" aria-label={`Toolset ${toolset.name}`}>
      <div className="toolset-head">
        <div>
          <Text fw={600} size="sm">
            {toolset.name}
          </Text>
          <Text size="sm">{toolset.description}</Text>
          {toolset.when_to_use && (
            <Text size="xs" c="dimmed">
              When to use: {toolset.when_to_use}
            </Text>
          )}
        </div>
        <TokenBar tokens={toolset.cost} most={most} isExact={false} label={`Cost of ${toolset.name}`} />
        <span>{session !== undefined && <SessionSwitch session={session} name={toolset.name} />}</span>
      </div>
      <details
        open={isOpen}
        onToggle={(event) => event.currentTarget.open !== isOpen && onOpen(event.currentTarget.open)}
      >
        <summary>
          {toolset.tools} {toolset.tools === 1 ? 'tool' : 'tools'}
        </summary>
        {isOpen &&
          toolset.members.map((name) => (
            <div className="member" key={name}>
              <Anchor component={Link} to={`/tools/${encodeURIComponent(name)}`} size="sm" className="mono">
                {name}
              </Anchor>
              <TokenBar tokens={costs.get(name) ?? 0} most={largest} isExact={false} label={`Cost of ${name}`} />
            </div>
          ))}
      </details>
    </article>
  );
}
