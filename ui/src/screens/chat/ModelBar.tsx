import { Button, Group, Popover, Select, TextInput } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { IconChevronUp } from '@tabler/icons-react';
import { useState } from 'react';
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

/** The name of a model; left empty, it is the provider's own. It is taken with Enter or when the field is left. */
function ModelField(props: { model: string; standard?: string; onChange: (model: string) => void }) {
  const [text, setText] = useState(props.model);
  const commit = () => text.trim() !== props.model && props.onChange(text.trim());
  return (
    <TextInput
      size="xs"
      label="Model"
      placeholder={props.standard ?? 'name of a model'}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => event.key === 'Enter' && commit()}
      w={180}
    />
  );
}
