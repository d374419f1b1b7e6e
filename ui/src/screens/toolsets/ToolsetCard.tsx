import { Anchor, Checkbox, Text } from '@mantine/core';
import { Link } from 'react-router';
import { TokenBar } from '../../components/TokenBar';
import type { CostedToolset } from '../../data/toolsets/compose';
import { SessionsSwitch } from './SessionsSwitch';
import { ToolsetActions } from './ToolsetActions';

interface ToolsetCardProps {
  toolset: CostedToolset;
  costs: ReadonlyMap<string, number>;
  most: number;
  sessions: string[];
  isOpen: boolean;
  onOpen: (isOpen: boolean) => void;
  isSelected: boolean;
  onSelect: (isSelected: boolean) => void;
  onEdit: () => void;
  onCopy: () => void;
}

/** One toolset: its cost, its switch in the chosen sessions, and its tools. */
export function ToolsetCard(props: ToolsetCardProps) {
  const { toolset, costs, most, sessions, isOpen, onOpen } = props;
  const largest = Math.max(1, ...toolset.members.map((name) => costs.get(name) ?? 0));
  return (
    <article className="toolset" aria-label={`Toolset ${toolset.name}`}>
      <div className="toolset-head" data-selectable={sessions.length > 0 || undefined}>
        {sessions.length > 0 && (
          <Checkbox
            aria-label={`Select ${toolset.name}`}
            checked={props.isSelected}
            onChange={(event) => props.onSelect(event.currentTarget.checked)}
          />
        )}
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
        <span>{sessions.length > 0 && <SessionsSwitch sessions={sessions} name={toolset.name} />}</span>
      </div>
      <details
        open={isOpen}
        onToggle={(event) => event.currentTarget.open !== isOpen && onOpen(event.currentTarget.open)}
      >
        <summary>
          {toolset.tools} {toolset.tools === 1 ? 'tool' : 'tools'}
        </summary>
        {isOpen && <ToolsetActions name={toolset.name} onEdit={props.onEdit} onCopy={props.onCopy} />}
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
