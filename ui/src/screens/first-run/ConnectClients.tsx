import { Group, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { CopyButton } from '../../components/CopyButton';
import { useMe } from '../../data/me';
import { clientSetups } from './clients';

/** The entry for each client, ready to copy. */
export function ConnectClients() {
  const { data: me } = useMe();
  const setups = clientSetups(window.location.origin, me !== undefined && me.access !== 'open');
  const [id, setId] = useState(setups[0].id);
  const shown = setups.find((setup) => setup.id === id) ?? setups[0];
  return (
    <Stack gap="xs">
      <Title order={3} size="h6">
        Your MCP clients
      </Title>
      <div className="wide-table">
        <SegmentedControl
          size="xs"
          aria-label="Client"
          data={setups.map((setup) => ({ value: setup.id, label: setup.title }))}
          value={id}
          onChange={setId}
        />
      </div>
      <Group justify="space-between" gap="xs">
        <Text size="sm">
          Put this into <span className="mono">{shown.file}</span>
        </Text>
        <CopyButton value={shown.text} label="Copy the entry" />
      </Group>
      <pre className="output" tabIndex={0} aria-label={`Entry for ${shown.title}`}>
        {shown.text}
      </pre>
      <Group gap="xs">
        <Text size="sm">
          or let the program do it: <span className="mono">{shown.command}</span>
        </Text>
        <CopyButton value={shown.command} name="Copy the command" />
      </Group>
    </Stack>
  );
}
