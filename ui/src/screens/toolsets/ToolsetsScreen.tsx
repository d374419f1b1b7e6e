import './toolsets.css';
import { Button, Group, Select, Stack, Text, Title } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useMemo } from 'react';
import { useSearchParams } from 'react-router';
import { Page } from '../../components/Page';
import { SearchField } from '../../components/SearchField';
import { Empty, QueryState } from '../../components/states';
import { useSessions, useTools, useToolsets } from '../../data/queries';
import { costed, estimate, total } from '../../data/toolsets/compose';
import { Composer } from './Composer';
import { ToolsetCard } from './ToolsetCard';
import { BulkSwitch } from './BulkSwitch';

/** The toolsets, what they cost, and where a session has them on. */
export function ToolsetsScreen() {
  const toolsets = useToolsets();
  const tools = useTools();
  const sessions = useSessions();
  const [search, setSearch] = useSearchParams();
  const set = (name: string, value: string | undefined, isStep = false) =>
    setSearch(
      (old) => {
        if (value === undefined || value === '') old.delete(name);
        else old.set(name, value);
        return old;
      },
      { replace: !isStep },
    );
  const costs = useMemo(() => new Map(tools.data?.tools.map((tool) => [tool.name, estimate(tool)])), [tools.data]);
  const text = search.get('q') ?? '';
  const session = search.get('session') ?? undefined;
  const isComposing = search.has('compose');
  const all = useMemo(() => total(costs.keys(), costs), [costs]);
  return (
    <Page
      title="Toolsets"
      about="Groups of tools that are switched together. A session and its model see the tools of those that are on."
      actions={
        !isComposing && (
          <Button leftSection={<IconPlus size={16} />} onClick={() => set('compose', '1', true)}>
            Compose a toolset
          </Button>
        )
      }
    >
      {isComposing && tools.data && (
        <Composer
          tools={tools.data.tools}
          costs={costs}
          taken={toolsets.data?.toolsets.map(({ name }) => name) ?? []}
          onClose={() => set('compose', undefined)}
        />
      )}
      <QueryState query={toolsets}>
        {(data) => {
          const found = costed(data.toolsets, costs, text);
          return (
            <Stack gap="md">
              <Text size="sm">
                Exposure: <strong>{data.exposure}</strong>. {data.reason}. All {costs.size} tools together cost about{' '}
                {all} tokens in every request.
              </Text>
              <Group gap="sm" align="flex-end">
                <SearchField
                  label="Search toolsets"
                  placeholder="Name, description or tool"
                  value={text}
                  onChange={(value) => set('q', value)}
                  style={{ flex: '1 1 200px' }}
                />
                <Select
                  label="Switch them in session"
                  placeholder="Choose a session"
                  data={
                    sessions.data?.sessions.map(({ id, title }) => ({
                      value: id,
                      label: title ? `${title} (${id})` : id,
                    })) ?? []
                  }
                  value={session ?? null}
                  onChange={(id) => set('session', id ?? undefined, true)}
                  searchable
                  clearable
                  clearButtonProps={{ 'aria-label': 'No session' }}
                  limit={100}
                  style={{ flex: '1 1 240px' }}
                />
              </Group>
              {session !== undefined && <BulkSwitch session={session} names={found.map(({ name }) => name)} />}
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
                  session={session}
                  isOpen={search.get('set') === toolset.name}
                  onOpen={(isOpen) => set('set', isOpen ? toolset.name : undefined)}
                />
              ))}
            </Stack>
          );
        }}
      </QueryState>
    </Page>
  );
}
