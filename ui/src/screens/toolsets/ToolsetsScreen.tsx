import './toolsets.css';
import { Button, Group, MultiSelect, Stack, Text, Title } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { Page } from '../../components/Page';
import { useSearch } from '../../components/search-params';
import { SearchField } from '../../components/SearchField';
import { Empty, QueryState } from '../../components/states';
import { useSessions, useTools, useToolsets } from '../../data/queries';
import { costed, estimate, total } from '../../data/toolsets/compose';
import { BulkSwitch } from './BulkSwitch';
import { Composing } from './Composing';
import { ToolsetCard } from './ToolsetCard';

/** Each chosen session is asked for its toolsets. */
const MOST_SESSIONS = 20;

/** The toolsets, what they cost, and where a session has them on. */
export function ToolsetsScreen() {
  const toolsets = useToolsets();
  const tools = useTools();
  const sessions = useSessions();
  const [search, setSearch] = useSearch();
  const set = (name: string, value: string | undefined) =>
    setSearch(
      (old) => {
        if (value === undefined || value === '') old.delete(name);
        else old.set(name, value);
        return old;
      },
      { replace: true },
    );
  const costs = useMemo(() => new Map(tools.data?.tools.map((tool) => [tool.name, estimate(tool)])), [tools.data]);
  const text = search.get('q') ?? '';
  const chosen = search.getAll('session');
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const edit = search.get('edit') ?? undefined;
  const isComposing = search.has('compose') || edit !== undefined;
  const compose = (change: Record<string, string>) =>
    setSearch((old) => {
      for (const name of ['compose', 'edit', 'from']) old.delete(name);
      for (const [name, value] of Object.entries(change)) old.set(name, value);
      return old;
    });
  const choose = (ids: string[]) =>
    setSearch((old) => {
      old.delete('session');
      for (const id of ids) old.append('session', id);
      return old;
    });
  const select = (name: string, isOn: boolean) =>
    setSelected((old) => {
      const next = new Set(old);
      if (isOn) next.add(name);
      else next.delete(name);
      return next;
    });
  const all = useMemo(() => total(costs.keys(), costs), [costs]);
  return (
    <Page
      title="Toolsets"
      about="Groups of tools that are switched together. A session and its model see the tools of those that are on."
      actions={
        !isComposing && (
          <Button leftSection={<IconPlus size={16} />} onClick={() => compose({ compose: '1' })}>
            Compose a toolset
          </Button>
        )
      }
    >
      {isComposing && tools.data && toolsets.data && (
        <Composing
          tools={tools.data.tools}
          costs={costs}
          toolsets={toolsets.data.toolsets}
          edit={edit}
          from={search.get('from') ?? undefined}
          onClose={() => compose({})}
        />
      )}
      <QueryState query={toolsets}>
        {(data) => {
          const found = costed(data.toolsets, costs, text);
          const isSelecting = found.some(({ name }) => selected.has(name));
          return (
            <Stack gap="md">
              <Text size="sm">
                Exposure: {data.reason}. All {costs.size} tools together cost about {all} tokens in every request.
              </Text>
              <Group gap="sm" align="flex-end">
                <SearchField
                  label="Search toolsets"
                  placeholder="Name, description or tool"
                  value={text}
                  onChange={(value) => set('q', value)}
                  style={{ flex: '1 1 200px' }}
                />
                <MultiSelect
                  label="Switch them in sessions"
                  placeholder={chosen.length === 0 ? 'Choose one or several' : undefined}
                  data={
                    sessions.data?.sessions.map(({ id, title }) => ({
                      value: id,
                      label: title ? `${title} (${id})` : id,
                    })) ?? []
                  }
                  value={chosen}
                  onChange={choose}
                  searchable
                  clearable
                  clearButtonProps={{ 'aria-label': 'No session' }}
                  limit={100}
                  maxValues={MOST_SESSIONS}
                  style={{ flex: '1 1 240px' }}
                />
              </Group>
              {chosen.length > 0 && (
                <BulkSwitch
                  sessions={chosen}
                  names={found.map(({ name }) => name).filter((name) => !isSelecting || selected.has(name))}
                  word={isSelecting ? 'selected' : 'that match'}
                />
              )}
              <Title order={2} size="h5">
                {found.length} of {data.toolsets.length} toolsets
              </Title>
              {found.length === 0 && (
                <Empty title={data.toolsets.length === 0 ? 'There are no toolsets' : 'No toolset matches'}>
                  Every server is a toolset of its own name; the configuration adds others.
                </Empty>
              )}
              {found.map((toolset) => (
                <ToolsetCard
                  key={toolset.name}
                  toolset={toolset}
                  costs={costs}
                  most={Math.max(1, ...found.map(({ cost }) => cost))}
                  sessions={chosen}
                  isOpen={search.get('set') === toolset.name}
                  onOpen={(isOpen) => set('set', isOpen ? toolset.name : undefined)}
                  isSelected={selected.has(toolset.name)}
                  onSelect={(isOn) => select(toolset.name, isOn)}
                  onEdit={() => compose({ edit: toolset.name })}
                  onCopy={() => compose({ compose: '1', from: toolset.name })}
                />
              ))}
            </Stack>
          );
        }}
      </QueryState>
    </Page>
  );
}
