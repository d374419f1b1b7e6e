import { Badge, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { client, unwrap } from '../../api/client';
import { ErrorPanel } from '../../components/states';

/** What the edited declaration would make of the tool, without writing it. */
export function DeclarationPreview({ name, body }: { name: string; body: string }) {
  const [wanted] = useDebouncedValue(body, 400);
  const query = useQuery({
    queryKey: ['preview', name, wanted],
    queryFn: () =>
      unwrap(
        client.POST('/api/v1/tools/{name}/declaration/preview', {
          params: { path: { name } },
          body: JSON.parse(wanted) as never,
        }),
      ),
    retry: false,
    placeholderData: (before) => before,
  });
  const tokens = Object.entries((query.data?.tokens ?? {}) as Record<string, number>);
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="xs">
        What models will see
      </Title>
      {query.isError && <ErrorPanel error={query.error} />}
      {query.data && (
        <Stack gap="xs">
          <Group gap={6} role="status" aria-label="Token cost">
            {tokens.map(([provider, count]) => (
              <Badge key={provider} variant="default" tt="none" title="Tokens of this tool, estimated">
                {provider} {count}
              </Badge>
            ))}
          </Group>
          {query.data.warnings.map((warning) => (
            <Text key={warning} size="sm">
              {warning}
            </Text>
          ))}
          <pre className="output" tabIndex={0} aria-label="The resulting schema">
            {JSON.stringify(query.data.input_schema, null, 2)}
          </pre>
        </Stack>
      )}
    </Paper>
  );
}
