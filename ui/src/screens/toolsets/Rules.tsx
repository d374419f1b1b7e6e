import { Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useState } from 'react';
import { useToolsetPreview } from '../../data/toolsets/entry';
import type { Composition } from './use-composition';

const listed = (text: string): string[] =>
  text
    .split(',')
    .map((each) => each.trim())
    .filter(Boolean);

interface RulesProps {
  draft: Composition;
  change: (part: Partial<Composition>) => void;
  servers: string[];
  /** The tools of the catalog. */
  known: ReadonlyMap<string, unknown>;
  error?: string;
}

/** Members that are not picked one by one: whole servers, and patterns that later tools match as well. */
export function Rules({ draft, change, servers, known, error }: RulesProps) {
  const others = draft.tools.filter((name) => !known.has(name));
  const [text, setText] = useState(others.join(', '));
  // A change from elsewhere, such as "Clear", is taken over; the text that makes the same list stays as it is typed.
  const shown = listed(text).join() === others.join() ? text : others.join(', ');
  const [rules] = useDebouncedValue({ tools: draft.tools, servers: draft.servers }, 300);
  const preview = useToolsetPreview(rules);
  const tokens = Object.entries(preview.data?.tokens ?? {});
  const isEmpty = draft.tools.length + draft.servers.length === 0;
  return (
    <Stack gap="xs">
      <Group gap="sm" align="flex-start">
        <TextInput
          label="Patterns"
          description="With * and ?, separated by commas; tools that come later match as well"
          placeholder="demo.get_*"
          value={shown}
          onChange={(event) => {
            setText(event.currentTarget.value);
            const picked = draft.tools.filter((name) => known.has(name));
            change({
              tools: [...picked, ...listed(event.currentTarget.value).filter((each) => !picked.includes(each))],
            });
          }}
          error={error}
          style={{ flex: '1 1 240px' }}
        />
        <Checkbox.Group
          label="Whole servers"
          description="All their tools, now and later"
          value={draft.servers}
          onChange={(next) => change({ servers: next })}
          style={{ flex: '1 1 240px' }}
        >
          <Group gap="sm" mt={4}>
            {servers.map((server) => (
              <Checkbox key={server} size="xs" value={server} label={<span className="mono">{server}</span>} />
            ))}
          </Group>
        </Checkbox.Group>
      </Group>
      <Text size="sm" role="status" aria-label="Members">
        {isEmpty && 'It has no tools yet.'}
        {!isEmpty && preview.data && `It has ${preview.data.members.length} tools now. `}
        {!isEmpty && preview.data && tokens.map(([provider, count]) => `${provider} ${count}`).join(' · ')}
        {!isEmpty && tokens.length > 0 && ' tokens'}
        {!isEmpty && preview.isError && preview.error.message}
      </Text>
    </Stack>
  );
}
