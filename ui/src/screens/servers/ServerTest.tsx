import { Alert, Button, Group, Stack, Table, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { client, unwrap } from '../../api/client';
import type { components } from '../../api/schema';
import { ErrorPanel } from '../../components/states';
import { StateBadge } from '../../components/StateBadge';
import { duration } from '../../components/time';

type ServerTrial = components['schemas']['ServerTrial'];

const NAMES = 12;

/** Connects to an address once, without adding it, and says how far that came. */
export function ServerTest({ url, token }: { url: string; token: string }) {
  const test = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/api/v1/server-tests', {
          body: { url, ...(token === '' ? {} : { headers: { Authorization: `Bearer ${token}` } }) },
        }),
      ),
  });
  return (
    <>
      {test.isError && <ErrorPanel error={test.error} />}
      {test.data && <Tested answer={test.data} />}
      <Group>
        <Button variant="default" loading={test.isPending} disabled={url === ''} onClick={() => test.mutate()}>
          Test
        </Button>
        <Text size="xs" c="dimmed">
          Connects once and lists its tools; nothing is added.
        </Text>
      </Group>
    </>
  );
}

function Tested({ answer }: { answer: ServerTrial }) {
  const tools = answer.tools ?? [];
  const about = [answer.reported_name, answer.reported_version, answer.era && `${answer.era} era`, answer.protocol];
  return (
    <Alert
      color={answer.ok ? 'green' : 'red'}
      variant="light"
      title={answer.ok ? `It works: ${tools.length} tools` : 'It does not work yet'}
      role="status"
    >
      <Stack gap={4}>
        <Table fz="sm">
          <Table.Tbody>
            {answer.steps.map((step) => (
              <Table.Tr key={step.name}>
                <Table.Td>{step.name}</Table.Td>
                <Table.Td miw={90}>
                  <StateBadge state={step.ok ? 'ok' : 'failed'} />
                </Table.Td>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>
                  {step.detail}
                  {step.hint != null && (
                    <>
                      {step.detail ? '. ' : ''}
                      <strong>What to do:</strong> {step.hint}
                    </>
                  )}{' '}
                  {step.ms != null && duration(step.ms)}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        {about.some(Boolean) && <Text size="sm">{about.filter(Boolean).join(' · ')}</Text>}
        {tools.length > 0 && (
          <Text size="sm" className="mono">
            {tools.slice(0, NAMES).join(', ')}
            {tools.length > NAMES && ` and ${tools.length - NAMES} more`}
          </Text>
        )}
        {(answer.quarantined ?? []).map((each) => (
          <Text key={each} size="sm">
            Cannot be used: {each}
          </Text>
        ))}
      </Stack>
    </Alert>
  );
}
