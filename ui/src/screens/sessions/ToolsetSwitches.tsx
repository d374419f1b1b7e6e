import { Anchor, Switch, Text } from '@mantine/core';
import { Link } from 'react-router';
import { Empty, QueryState } from '../../components/states';
import { switchToolset } from '../../data/session/draft';
import { useSessionToolsets } from '../../data/session/queries';
import type { StagedChange } from './use-session-draft';

export function ToolsetSwitches({ id, change }: { id: string; change: StagedChange }) {
  const toolsets = useSessionToolsets(id);
  return (
    <QueryState query={toolsets}>
      {(data) => {
        if (data.toolsets.length === 0) return <Empty title="There are no toolsets" />;
        return (
          <div className="switch-list">
            {data.toolsets.map(({ name, description, when_to_use, enabled, tools }) => {
              const staged = change.draft.toolsets?.[name];
              return (
                <div key={name} className="switch-row" data-staged={staged !== undefined || undefined}>
                  <div>
                    <Anchor component={Link} to={`/toolsets?set=${encodeURIComponent(name)}`} size="sm" fw={600}>
                      {name}
                    </Anchor>{' '}
                    <Text span size="xs" c="dimmed">
                      {tools} {tools === 1 ? 'tool' : 'tools'} · {description}
                      {when_to_use ? ` · ${when_to_use}` : ''}
                    </Text>
                  </div>
                  <Switch
                    aria-label={`Toolset ${name}`}
                    checked={staged ?? enabled}
                    onChange={(event) => {
                      const isOn = event.currentTarget.checked;
                      change.edit((draft) => switchToolset(draft, name, isOn, enabled));
                    }}
                  />
                </div>
              );
            })}
          </div>
        );
      }}
    </QueryState>
  );
}
