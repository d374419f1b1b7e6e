import { Alert, Badge, Group, Stack, Switch, Table, Text } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { client, unwrap } from '../../api/client';
import type { ConfigValueView, ConfigView } from '../../api/types';
import { Ago } from '../../components/Ago';
import { Page } from '../../components/Page';
import { Place } from '../../components/Place';
import { useSearch } from '../../components/search-params';
import { SearchField } from '../../components/SearchField';
import { Empty, QueryState } from '../../components/states';
import { settingsOf } from './setting';

const SHOWN = 500;

function place({ origin }: ConfigValueView): string {
  const { kind, place, line, column } = origin;
  if (place == null) return kind;
  return line == null ? `${kind} ${place}` : `${place}:${line}:${column ?? 1}`;
}

function Refused({ config }: { config: ConfigView }) {
  if (!config.refused) return null;
  return (
    <Alert
      color="red"
      variant="light"
      title="The file on the disk is refused; the configuration of before is in force"
      role="alert"
    >
      <Text size="sm">
        Since <Ago at={config.refused.at_ms} inherit />. Correct the file, and the board takes it over by itself.
      </Text>
      <Stack gap={2} mt="xs">
        {config.refused.errors.map(({ path, message }) => (
          <Text key={path + message} size="sm">
            {path !== '' && <span className="mono">{path}: </span>}
            {message}
          </Text>
        ))}
      </Stack>
    </Alert>
  );
}

function Values({ config }: { config: ConfigView }) {
  const [search, setSearch] = useSearch();
  const text = search.get('q') ?? '';
  const withDefaults = search.has('defaults');
  const set = (name: string, value: string | undefined) =>
    setSearch(
      (before) => {
        if (value === undefined) before.delete(name);
        else before.set(name, value);
        return before;
      },
      { replace: true },
    );
  const settings = useMemo(() => settingsOf(config.values), [config.values]);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = config.values.filter((value) => {
    if (!withDefaults && value.origin.kind === 'default') return false;
    const all =
      `${value.pointer} ${settings.get(value.pointer)} ${JSON.stringify(value.value)} ${place(value)}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
  return (
    <>
      <Group align="flex-end">
        <SearchField
          className="grow"
          label="Search"
          placeholder="Setting, value or place"
          leftSection={<IconSearch size={16} />}
          value={text}
          onChange={(value) => set('q', value || undefined)}
        />
        <Switch
          label="Defaults too"
          checked={withDefaults}
          onChange={(event) => set('defaults', event.currentTarget.checked ? '' : undefined)}
          mb={8}
        />
      </Group>
      <Text size="sm" c="dimmed" role="status">
        {matching.length} of {config.values.length} values
        {matching.length > SHOWN && `, the first ${SHOWN} shown`}
      </Text>
      {matching.length === 0 ? (
        <Empty title="No setting matches">Search for fewer words, or show the defaults too.</Empty>
      ) : (
        <div className="wide-table" tabIndex={0} role="region" aria-label="Settings">
          <Table fz="sm" striped>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Setting</Table.Th>
                <Table.Th>Value</Table.Th>
                <Table.Th>Comes from</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {matching.slice(0, SHOWN).map((value) => (
                <Table.Tr key={value.pointer}>
                  <Table.Td className="mono">{settings.get(value.pointer)}</Table.Td>
                  <Table.Td className="mono">
                    {value.secret ? (
                      <Badge variant="light" color="gray" className="state">
                        secret
                      </Badge>
                    ) : (
                      JSON.stringify(value.value)
                    )}
                  </Table.Td>
                  <Table.Td>
                    <Place of={place(value)} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
    </>
  );
}

export function ConfigScreen() {
  const query = useQuery({
    queryKey: ['config'],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/config', { signal })),
  });
  return (
    <Page title="Configuration" about="Every setting that is in force, and where it comes from">
      <QueryState query={query}>
        {(config) => (
          <>
            <Text size="sm">
              Revision {config.revision}, in force since <Ago at={config.loaded_at_ms} inherit />
              {config.file !== null && (
                <>
                  {' '}
                  from <span className="mono">{config.file}</span>. The board takes over changes of the file by itself
                </>
              )}
              .
            </Text>
            <Refused config={config} />
            {config.warnings.length > 0 && (
              <Alert color="yellow" variant="light" title="Warnings">
                {config.warnings.map((warning) => (
                  <Text key={warning} size="sm">
                    {warning}
                  </Text>
                ))}
              </Alert>
            )}
            <Values config={config} />
          </>
        )}
      </QueryState>
    </Page>
  );
}
