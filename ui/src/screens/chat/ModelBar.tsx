import { Autocomplete, Button, Group, Popover, Select, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { IconChevronUp } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ModelView } from '../../api/types';
import { modelsQuery, useProviders } from '../../data/queries';

/** Lists of gateways have hundreds of models; typing narrows them down. */
const SHOWN = 100;

export interface ModelChoice {
  provider?: string | null;
  model?: string | null;
  strategy?: string | null;
}

const STRATEGIES = [
  { value: '', label: 'as the provider says' },
  { value: 'native', label: 'native tool calls' },
  { value: 'react', label: 'ReACT' },
];

interface ModelBarProps {
  value: ModelChoice;
  onChange: (change: ModelChoice) => void;
}

/** Who answers, with which model and how it uses tools. A change holds from the next message on. */
export function ModelBar(props: ModelBarProps) {
  const isNarrow = useMediaQuery('(max-width: 48em)', false, { getInitialValueInEffect: false });
  if (!isNarrow) return <Choices {...props} />;
  const { provider, model, strategy } = props.value;
  return (
    <Popover position="top-start" trapFocus withinPortal>
      <Popover.Target>
        <Button size="xs" variant="default" rightSection={<IconChevronUp size={14} />}>
          {[provider ?? 'Model', model, strategy].filter(Boolean).join(' · ')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Provider, model and strategy">
        <Choices {...props} withinPortal={false} />
      </Popover.Dropdown>
    </Popover>
  );
}

function Choices({ value, onChange, withinPortal = true }: ModelBarProps & { withinPortal?: boolean }) {
  const providers = useProviders();
  const list = providers.data?.providers ?? [];
  const chosen = list.find(({ name }) => name === value.provider) ?? list[0];
  return (
    <Group gap="xs" align="flex-end" className="model-bar">
      <Select
        size="xs"
        label="Provider"
        data={list.map(({ name, has_credentials }) => ({
          value: name,
          label: has_credentials ? name : `${name} (no key)`,
        }))}
        value={value.provider ?? chosen?.name ?? null}
        allowDeselect={false}
        comboboxProps={{ withinPortal }}
        onChange={(provider) => provider !== null && onChange({ provider, model: null })}
        w={150}
      />
      <ModelField
        key={`${value.provider}/${value.model}`}
        provider={chosen?.has_credentials ? chosen.name : undefined}
        model={value.model ?? ''}
        standard={chosen?.model ?? undefined}
        onChange={(model) => onChange({ model: model === '' ? null : model })}
      />
      <Select
        size="xs"
        label="Strategy"
        data={STRATEGIES}
        value={value.strategy ?? ''}
        allowDeselect={false}
        comboboxProps={{ withinPortal }}
        onChange={(strategy) => onChange({ strategy: strategy === '' ? null : strategy })}
        w={190}
      />
    </Group>
  );
}

interface ModelFieldProps {
  /** The provider that is asked for its models; absent where it cannot be asked. */
  provider?: string;
  model: string;
  standard?: string;
  onChange: (model: string) => void;
}

/**
 * The name of a model; left empty, it is the provider's own. The provider is asked for its models when the field is entered; a
 * name that is not in its list can be written too. It is taken with Enter, by choice, or when the field is left.
 */
function ModelField({ provider, model, standard, onChange }: ModelFieldProps) {
  const [text, setText] = useState(model);
  const [isEntered, setEntered] = useState(false);
  const list = useQuery({ ...modelsQuery(provider ?? ''), enabled: isEntered && provider !== undefined });
  const models = list.data?.models ?? [];
  const commit = (name: string) => name.trim() !== model && onChange(name.trim());
  // Once a name of the list stands in the field, all are offered again.
  const isChosen = models.some(({ id }) => id === text);
  return (
    <Autocomplete
      size="xs"
      label="Model"
      placeholder={standard ?? 'name of a model'}
      data={models.map(({ id }) => id)}
      filter={isChosen ? ({ options }) => options : undefined}
      limit={SHOWN}
      maxDropdownHeight={320}
      value={text}
      comboboxProps={{ withinPortal: false, floatingStrategy: 'fixed', width: 280, position: 'top-start' }}
      renderOption={({ option }) => <ModelOption model={models.find(({ id }) => id === option.value)} />}
      inputWrapperOrder={['label', 'input', 'description']}
      description={list.isError ? `No list: ${list.error.message}` : undefined}
      onFocus={() => setEntered(true)}
      onChange={setText}
      onOptionSubmit={commit}
      onBlur={() => commit(text)}
      onKeyDown={(event) => event.key === 'Enter' && commit(text)}
      w={200}
    />
  );
}

function ModelOption({ model }: { model?: ModelView }) {
  if (model === undefined) return null;
  const about = [
    model.title,
    model.context_window && `${tokens(model.context_window)} tokens`,
    model.max_output_tokens && `${tokens(model.max_output_tokens)} out`,
  ].filter(Boolean);
  return (
    <div>
      <Text size="sm">{model.id}</Text>
      {about.length > 0 && (
        <Text size="xs" c="dimmed">
          {about.join(' · ')}
        </Text>
      )}
    </div>
  );
}

/** A number of tokens in thousands or millions. */
const tokens = (count: number): string =>
  count >= 1_000_000 ? `${Number((count / 1_000_000).toFixed(1))} M` : `${Math.round(count / 1000)} k`;
