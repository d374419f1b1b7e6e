import { Autocomplete, Button, Group, Popover, Select, TextInput } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { IconChevronUp } from '@tabler/icons-react';
import { useState } from 'react';
import { useModels } from '../../data/chat/queries';
import { useProviders } from '../../data/queries';

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
        provider={chosen?.name}
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
        w={160}
      />
    </Group>
  );
}

function ModelField(props: { provider?: string; model: string; standard?: string; onChange: (model: string) => void }) {
  const [text, setText] = useState(props.model);
  const [isTouched, setTouched] = useState(false);
  const models = useModels(isTouched ? props.provider : undefined);
  const names = models.data?.models.map(({ id }) => id) ?? [];
  const commit = () => text.trim() !== props.model && props.onChange(text.trim());
  const common = {
    size: 'xs' as const,
    label: 'Model',
    placeholder: props.standard ?? 'name of a model',
    value: text,
    onFocus: () => setTouched(true),
    onBlur: commit,
    onKeyDown: (event: React.KeyboardEvent) => event.key === 'Enter' && commit(),
    w: 180,
  };
  if (names.length === 0) return <TextInput {...common} onChange={(event) => setText(event.currentTarget.value)} />;
  return (
    <Autocomplete
      {...common}
      data={names}
      onChange={setText}
      onOptionSubmit={(name) => props.onChange(name)}
      limit={50}
    />
  );
}
