import { Alert, Button, Group, Stack, Text, Textarea, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useMemo, useRef, useState } from 'react';
import { ApiError } from '../../api/problem';
import { CopyButton } from '../../components/CopyButton';
import { LeaveGuard } from '../../components/LeaveGuard';
import { ErrorPanel } from '../../components/states';
import { Written } from '../../components/Written';
import { yaml } from '../../components/yaml';
import { useRole } from '../../data/me';
import { entryOf, faultsOf, matchingTools, type Tool, total } from '../../data/toolsets/compose';
import { putToolset, type ToolsetEntry } from '../../data/toolsets/entry';
import { PickList } from './PickList';
import { Rules } from './Rules';
import { type Composition, compositionOf, useComposition } from './use-composition';

interface ComposerProps {
  tools: Tool[];
  costs: ReadonlyMap<string, number>;
  servers: string[];
  taken: string[];
  /** The toolset that is edited; absent for a new one. */
  edited?: { name: string; entry: ToolsetEntry; etag: string };
  /** What a new one begins with, as a copy of another. */
  start?: Partial<Composition>;
  onClose: () => void;
}

/** Puts a toolset together from a search: all that match can be taken at once. What is not saved survives a reload. */
export function Composer({ tools, costs, servers, taken, edited, start, onClose }: ComposerProps) {
  const form = `toolset:${edited?.name ?? ''}`;
  const first = edited ? compositionOf(edited.name, edited.entry) : (start ?? {});
  const { draft, etag, isChanged, change, reset, forget } = useComposition(form, first, edited?.etag);
  const isAdmin = useRole('admin');
  const [text, setText] = useState('');
  const [isShown, setShown] = useState(false);
  const isSaved = useRef(false);
  const found = useMemo(() => matchingTools(tools, text), [tools, text]);
  const chosen = useMemo(() => new Set(draft.tools), [draft.tools]);
  const faults = faultsOf(draft, edited ? [] : taken);
  const set = (names: string[], isOn: boolean) => {
    const next = new Set(chosen);
    for (const name of names)
      if (isOn) next.add(name);
      else next.delete(name);
    change({ tools: [...next] });
  };
  const names = found.map(({ name }) => name);
  const isEmpty = draft.tools.length + draft.servers.length === 0;
  const isReady = Object.keys(faults).length === 0 && !isEmpty;
  const rules = { tools: draft.tools, servers: draft.servers };
  const save = useMutation({
    mutationFn: () => {
      const { name, ...rest } = entryOf(draft, rules);
      return putToolset(name, rest, etag);
    },
    onSuccess: () => {
      isSaved.current = true;
      forget();
      onClose();
    },
  });
  const refused = save.error instanceof ApiError ? save.error : undefined;
  const at = (path: string) => refused?.errors.find((error) => error.path === path)?.message;
  const entry = entryOf(draft, rules);
  const asText = `${yaml([entry])}\n`;
  const title = edited ? `Edit the toolset ${edited.name}` : 'Compose a toolset';
  return (
    <section className="compose" aria-labelledby="compose-title">
      <LeaveGuard
        when={isChanged}
        what={edited ? `the toolset ${edited.name}` : 'a new toolset'}
        onDiscard={forget}
        isSaved={isSaved}
      />
      <Stack gap="sm">
        <Title order={2} size="h5" id="compose-title">
          {title}
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
        <Rules draft={draft} change={change} servers={servers} known={costs} error={at('/tools') ?? at('/servers')} />
        <Group gap="sm" align="flex-start">
          {!edited && (
            <TextInput
              label="Name"
              value={draft.name}
              onChange={(event) => change({ name: event.currentTarget.value })}
              error={isShown || draft.name !== '' ? (faults.name ?? at('/name')) : undefined}
              required
              style={{ flex: '1 1 160px' }}
            />
          )}
          <TextInput
            label="Description"
            description="Models read it when they choose."
            value={draft.description}
            onChange={(event) => change({ description: event.currentTarget.value })}
            error={isShown ? (faults.description ?? at('/description')) : undefined}
            required
            style={{ flex: '2 1 240px' }}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
          />
          <TextInput
            label="When to use it"
            value={draft.when_to_use}
            onChange={(event) => change({ when_to_use: event.currentTarget.value })}
            error={at('/when_to_use')}
            style={{ flex: '2 1 240px' }}
          />
        </Group>
        {isShown && isEmpty && <ErrorPanel error={new Error('Choose at least one tool.')} />}
        {isChanged && (edited !== undefined || isReady) && (
          <Written
            before={edited && entryOf(first as Composition, first as Composition)}
            after={entry}
            place="toolsets"
          />
        )}
        {isShown && isReady && (
          <>
            <Textarea
              label="Add this below switchboard.toolsets in the configuration"
              description="The board takes it over by itself when the file is saved."
              value={asText}
              readOnly
              autosize
              maxRows={16}
              classNames={{ input: 'mono' }}
            />
            <Group>
              <CopyButton value={asText} label="Copy" />
            </Group>
          </>
        )}
        {refused?.status === 412 ? (
          <Alert color="yellow" variant="light" title="Somebody else has changed this toolset" role="alert">
            <Text size="sm">Nothing was written, and your edits are still here. Undo them to see how it is now.</Text>
          </Alert>
        ) : (
          save.isError && <ErrorPanel error={save.error} />
        )}
        <Group gap="xs">
          <Button
            loading={save.isPending}
            disabled={!isAdmin || (edited !== undefined && !isChanged)}
            title={isAdmin ? undefined : 'This needs the role admin'}
            onClick={() => {
              setShown(!isReady);
              if (isReady) save.mutate();
            }}
          >
            Save
          </Button>
          <Button variant="default" onClick={() => setShown(true)}>
            Show the entry
          </Button>
          <Button
            variant="default"
            disabled={!isChanged}
            onClick={() => {
              reset();
              setShown(false);
              save.reset();
            }}
          >
            {edited ? 'Undo' : 'Clear'}
          </Button>
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          {isChanged && <Text size="sm">Not saved yet</Text>}
        </Group>
      </Stack>
    </section>
  );
}
