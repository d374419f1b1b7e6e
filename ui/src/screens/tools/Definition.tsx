import { Paper, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { client, unwrap } from '../../api/client';
import type { ToolView } from '../../api/types';
import { CopyButton } from '../../components/CopyButton';
import { Place } from '../../components/Place';
import { useRole } from '../../data/me';

const LIMITS: [keyof ToolView['limits'], string][] = [
  ['max_instances', 'Calls at once'],
  ['timeout', 'Timeout'],
  ['max_timeout', 'Longest timeout with progress'],
  ['inactivity_timeout', 'Timeout without progress'],
  ['queue_timeout', 'Longest wait for a slot'],
  ['max_result_bytes', 'Largest result in bytes'],
  ['rate', 'Rate'],
];

export function useDeclaration(name: string, isWanted = true) {
  return useQuery({
    queryKey: ['declaration', name],
    queryFn: ({ signal }) =>
      unwrap(client.GET('/api/v1/tools/{name}/declaration', { params: { path: { name } }, signal })),
    enabled: isWanted,
  });
}

/** Where a limit comes from: the tool's own entry, its server's defaults, or the program. */
function useOrigins(tool: ToolView): (limit: string) => string {
  const may = useRole('operator');
  const declaration = useDeclaration(tool.name, may).data;
  const server = useQuery({
    queryKey: ['server', tool.server],
    queryFn: ({ signal }) =>
      unwrap(client.GET('/api/v1/servers/{name}', { params: { path: { name: tool.server } }, signal })),
    enabled: may && tool.server !== 'local',
    retry: false,
  }).data;
  return (limit) => {
    const own = (declaration?.origins as Record<string, string> | undefined)?.[`/limits/${limit}`];
    if (own !== undefined) return `${own} (this tool)`;
    const shared = (server?.origins as Record<string, string> | undefined)?.[`/default_tool_config/${limit}`];
    if (shared !== undefined) return `${shared} (defaults of ${tool.server})`;
    return may ? 'default' : '';
  };
}

/** The limits that are in force with the place of each, and the schemas. */
export function Definition({ tool }: { tool: ToolView }) {
  const origin = useOrigins(tool);
  const schemas: [string, unknown][] = [
    ['Input schema', tool.input_schema],
    ['Output schema', tool.output_schema],
  ];
  return (
    <div className="two-panes">
      <Paper withBorder p="md">
        <Title order={2} size="h5" mb="xs">
          Limits
        </Title>
        <Table fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Limit</Table.Th>
              <Table.Th>Value</Table.Th>
              <Table.Th>From</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {LIMITS.map(([key, label]) => (
              <Table.Tr key={key}>
                <Table.Td>{label}</Table.Td>
                <Table.Td>{tool.limits[key] ?? 'none'}</Table.Td>
                <Table.Td>{tool.limits[key] !== null && <Place of={origin(key)} />}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        {tool.repairs.length > 0 && (
          <Stack gap={4} mt="md">
            <Title order={3} size="h6">
              Repairs of the server's schema
            </Title>
            {tool.repairs.map((repair) => (
              <Text key={repair} size="sm">
                {repair}
              </Text>
            ))}
          </Stack>
        )}
      </Paper>
      <Stack>
        {schemas.map(
          ([title, schema]) =>
            schema !== null && (
              <Paper key={title} withBorder p="md">
                <Title order={2} size="h5" mb="xs">
                  {title}{' '}
                  <CopyButton value={JSON.stringify(schema, null, 2)} name={`Copy the ${title.toLowerCase()}`} />
                </Title>
                <pre className="output" tabIndex={0} aria-label={title}>
                  {JSON.stringify(schema, null, 2)}
                </pre>
              </Paper>
            ),
        )}
      </Stack>
    </div>
  );
}
