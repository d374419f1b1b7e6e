import './renderings.css';
import { Button, Group, MultiSelect, Select, Stack, Text } from '@mantine/core';
import { useMemo } from 'react';
import { Link } from 'react-router';
import { Page } from '../../components/Page';
import { useSearch } from '../../components/search-params';
import { Empty, QueryState } from '../../components/states';
import { useSessions } from '../../data/queries';
import { FORMATS, useRenderings } from '../../data/renderings/queries';
import { rowsOf } from '../../data/renderings/renderings';
import { Changes } from './Changes';
import { Summary } from './Summary';
import { ToolDetails } from './ToolDetails';
import { ToolTable } from './ToolTable';

const DEFAULT = 'openai,anthropic,gemini';

/** What each provider would be told of the tools of a session, side by side. The address has every choice. */
export function RenderingsScreen() {
  const sessions = useSessions();
  const [search, setSearch] = useSearch();
  const session = search.get('session') ?? undefined;
  const chosen = search.get('providers') ?? DEFAULT;
  const providers = useMemo(() => chosen.split(',').filter((name) => name in FORMATS), [chosen]);
  const set = (name: string, value: string | undefined, isStep = false) =>
    setSearch(
      (old) => {
        if (value === undefined || value === '') old.delete(name);
        else old.set(name, value);
        return old;
      },
      { replace: !isStep },
    );
  const renderings = useRenderings(session, providers);
  const rows = useMemo(() => rowsOf(renderings.data?.renderings ?? []), [renderings.data]);
  const tool = search.get('tool') ?? undefined;
  const since = Number(search.get('since')) || undefined;
  const options =
    sessions.data?.sessions.map(({ id, title }) => ({ value: id, label: title ? `${title} (${id})` : id })) ?? [];
  return (
    <Page
      title="Renderings"
      about="The tools of a session as each provider is told of them, with what was rewritten and why."
    >
      <Group gap="sm" align="flex-end">
        <Select
          label="Session"
          placeholder="Choose a session"
          data={options}
          value={session ?? null}
          onChange={(id) => set('session', id ?? undefined, true)}
          searchable
          limit={100}
          allowDeselect={false}
          style={{ flex: '1 1 200px' }}
        />
        <MultiSelect
          label="Providers"
          data={Object.entries(FORMATS).map(([value, about]) => ({ value, label: value, about }))}
          value={providers}
          onChange={(names) => set('providers', names.join(','))}
          style={{ flex: '2 1 300px' }}
          maxValues={4}
          clearable={false}
        />
      </Group>
      {session === undefined ? (
        <Empty
          title={sessions.data?.sessions.length === 0 ? 'There are no sessions' : 'Choose a session'}
          action={
            sessions.data?.sessions.length === 0 ? (
              <Button component={Link} to="/chat">
                Begin a chat
              </Button>
            ) : undefined
          }
        >
          A rendering is the tools of one session in the shape of one provider.
        </Empty>
      ) : providers.length === 0 ? (
        <Empty title="Choose a provider" />
      ) : (
        <QueryState query={renderings}>
          {(data) => (
            <Stack gap="lg">
              <Text size="sm" role="status">
                Tools at revision {data.tools_revision}
              </Text>
              <Summary renderings={data.renderings} />
              <Changes
                session={session}
                providers={providers}
                revision={data.tools_revision}
                since={since}
                onSince={(value) => set('since', value?.toString())}
                renderings={data.renderings}
              />
              <ToolTable
                renderings={data.renderings}
                rows={rows}
                text={search.get('q') ?? ''}
                only={search.get('only') ?? ''}
                chosen={tool}
                onText={(value) => set('q', value)}
                onOnly={(value) => set('only', value)}
                onChoose={(name) => set('tool', name, true)}
              />
              {tool !== undefined && (
                <ToolDetails
                  session={session}
                  row={rows.find(({ name }) => name === tool)}
                  name={tool}
                  providers={providers}
                  onClose={() => set('tool', undefined)}
                />
              )}
            </Stack>
          )}
        </QueryState>
      )}
    </Page>
  );
}
