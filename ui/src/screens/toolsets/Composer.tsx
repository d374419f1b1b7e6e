import { Button, Group, Stack, Text, Textarea, TextInput, Title } from '@mantine/core';
import { useMemo, useState } from 'react';
import { CopyButton } from '../../components/CopyButton';
import { useDraft } from '../../components/draft';
import { ErrorPanel } from '../../components/states';
import { asYaml, faultsOf, matchingTools, type Tool, total } from '../../data/toolsets/compose';
import { PickList } from './PickList';

interface ComposerProps {
  tools: Tool[];
  costs: ReadonlyMap<string, number>;
  taken: string[];
  onClose: () => void;
}

interface Draft {
  name: string;
  description: string;
  when_to_use: string;
  chosen: string[];
}

const EMPTY: Draft = { name: '', description: '', when_to_use: '', chosen: [] };

function useComposition(): [Draft, (change: Partial<Draft>) => void, () => void] {
  const [text, setText] = useDraft('toolset');
  const draft = useMemo((): Draft => {
    try {
      return { ...EMPTY, ...(JSON.parse(text || '{}') as Partial<Draft>) };
    } catch {
      return EMPTY;
    }
  }, [text]);
  return [draft, (change) => setText(JSON.stringify({ ...draft, ...change })), () => setText('')];
}

/** Puts a toolset together from a search: all that match can be taken at once. The selection survives a reload. */
export function Composer({ tools, costs, taken, onClose }: ComposerProps) {
  const [draft, change, clear] = useComposition();
  const [text, setText] = useState('');
  const [isShown, setShown] = useState(false);
  const found = useMemo(() => matchingTools(tools, text), [tools, text]);
  const chosen = useMemo(() => new Set(draft.chosen), [draft.chosen]);
  const faults = faultsOf(draft, taken);
  const gone = draft.chosen.filter((name) => !costs.has(name));
  const set = (names: string[], isOn: boolean) => {
    const next = new Set(chosen);
    for (const name of names)
      if (isOn) next.add(name);
      else next.delete(name);
    change({ chosen: [...next] });
  };
  const names = found.map(({ name }) => name);
  const isReady = Object.keys(faults).length === 0 && chosen.size > 0;
  const yaml = asYaml(draft, draft.chosen);
  return (
    <section className="compose" aria-labelledby="compose-title">
      <Stack gap="sm">
        <Title order={2} size="h5" id="compose-title">
          Compose a toolset
        </Title>
        <TextInput
          label="Search tools"
          placeholder="Name or description"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          data-autofocus
        />
        <Group gap="xs">
          <Text size="sm" role="status">
            {found.length} of {tools.length} match · {chosen.size} chosen, about {total(chosen, costs)} tokens in every
            request
          </Text>
          <Button size="compact-xs" variant="default" disabled={found.length === 0} onClick={() => set(names, true)}>
            Take all {found.length} that match
          </Button>
          <Button size="compact-xs" variant="default" disabled={chosen.size === 0} onClick={() => set(names, false)}>
            Drop all that match
          </Button>
        </Group>
        <PickList tools={found} costs={costs} chosen={chosen} onPick={(name, isOn) => set([name], isOn)} />
        {gone.length > 0 && <Text size="sm">Not in the catalog at the moment: {gone.join(', ')}</Text>}
        <Group gap="sm" align="flex-start">
          <TextInput
            label="Name"
            value={draft.name}
            onChange={(event) => change({ name: event.currentTarget.value })}
            error={isShown || draft.name !== '' ? faults.name : undefined}
            required
            style={{ flex: '1 1 160px' }}
          />
          <TextInput
            label="Description"
            description="Models read it when they choose."
            value={draft.description}
            onChange={(event) => change({ description: event.currentTarget.value })}
            error={isShown ? faults.description : undefined}
            required
            style={{ flex: '2 1 240px' }}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
          />
          <TextInput
            label="When to use it"
            value={draft.when_to_use}
            onChange={(event) => change({ when_to_use: event.currentTarget.value })}
            style={{ flex: '2 1 240px' }}
          />
        </Group>
        {isShown && chosen.size === 0 && <ErrorPanel error={new Error('Choose at least one tool.')} />}
        {isShown && isReady && (
          <>
            <Textarea
              label="Add this below switchboard.toolsets in the configuration"
              description="The board takes it over by itself when the file is saved."
              value={yaml}
              readOnly
              autosize
              maxRows={16}
              classNames={{ input: 'mono' }}
            />
            <Group>
              <CopyButton value={yaml} label="Copy" />
            </Group>
          </>
        )}
        <Group gap="xs">
          <Button onClick={() => setShown(true)}>Show the entry</Button>
          <Button
            variant="default"
            onClick={() => {
              clear();
              setShown(false);
            }}
          >
            Clear
          </Button>
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
        </Group>
      </Stack>
    </section>
  );
}
