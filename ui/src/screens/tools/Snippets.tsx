import { Box, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ToolView } from '../../api/types';
import { CopyButton } from '../../components/CopyButton';
import { useMe } from '../../data/me';
import { snippets } from './snippets';

/** The call of the draft as code to copy. */
export function Snippets({ tool, args }: { tool: ToolView; args: object }) {
  const { data: me } = useMe();
  const all = snippets(tool, args, window.location.origin, me !== undefined && me.access !== 'open');
  const [name, setName] = useState(all[0].name);
  const shown = all.find((snippet) => snippet.name === name) ?? all[0];
  return (
    <details className="fold">
      <summary>Copy as code</summary>
      <Stack gap="xs" mt="xs">
        <Group justify="space-between" gap="xs">
          <SegmentedControl
            size="xs"
            data={all.map((snippet) => snippet.name)}
            value={name}
            onChange={setName}
            aria-label="Kind of code"
          />
          <CopyButton value={shown.text} label="Copy" />
        </Group>
        <Box>
          <pre className="output" tabIndex={0} aria-label={`The call for ${shown.name}`}>
            {shown.text}
          </pre>
        </Box>
        {me && me.access !== 'open' && (
          <Text size="xs" c="dimmed">
            The key stays a variable: set SWITCHBOARD_API_KEY.
          </Text>
        )}
      </Stack>
    </details>
  );
}
