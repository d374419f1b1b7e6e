import { ActionIcon, Checkbox, Fieldset, Group, NativeSelect, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconTrash } from '@tabler/icons-react';
import type { FieldError } from '../../api/problem';
import { type ArgumentRow, TYPES } from './argument-rows';

export interface ArgumentFieldsProps {
  row: ArgumentRow;
  index: number;
  count: number;
  fault: string | undefined;
  errors: FieldError[];
  onChange: (part: Partial<ArgumentRow>) => void;
  onMove: (to: number) => void;
  onRemove: () => void;
}

/** One declared argument. What the board refuses stands at its field, and the text stays. */
export function ArgumentFields({ row, index, count, fault, errors, onChange, onMove, onRemove }: ArgumentFieldsProps) {
  const at = (member: string) => errors.find(({ path }) => path === `/arguments/${index}/${member}`)?.message;
  const whole = errors.filter(({ path }) => path === `/arguments/${index}`);
  const label = row.name === '' ? `argument ${index + 1}` : row.name;
  return (
    <Fieldset legend={<span className="mono">{label}</span>} p="sm" data-argument={row.name}>
      <Stack gap="xs">
        <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="xs">
          <TextInput
            label="Name"
            required
            value={row.name}
            onChange={(event) => onChange({ name: event.currentTarget.value })}
            error={fault ?? at('name')}
          />
          <NativeSelect
            label="Type"
            data={[{ value: '', label: "server's" }, ...TYPES]}
            value={row.type}
            onChange={(event) => onChange({ type: event.currentTarget.value })}
            error={at('type')}
          />
          <NativeSelect
            label="Required"
            data={[
              { value: '', label: 'as the server says' },
              { value: 'yes', label: 'yes' },
              { value: 'no', label: 'no' },
            ]}
            value={row.required}
            onChange={(event) => onChange({ required: event.currentTarget.value as ArgumentRow['required'] })}
            error={at('required')}
          />
        </SimpleGrid>
        <TextInput
          label="Description"
          value={row.description}
          onChange={(event) => onChange({ description: event.currentTarget.value })}
          error={at('description')}
        />
        <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="xs">
          <TextInput
            label="Choices"
            placeholder="a, b, c"
            value={row.enumText}
            onChange={(event) => onChange({ enumText: event.currentTarget.value })}
            error={at('enum')}
          />
          <TextInput
            label="Default"
            value={row.defaultText}
            onChange={(event) => onChange({ defaultText: event.currentTarget.value })}
            error={at('default')}
          />
          <TextInput
            label="Fixed value"
            value={row.valueText}
            onChange={(event) => onChange({ valueText: event.currentTarget.value })}
            error={at('value')}
          />
        </SimpleGrid>
        {whole.map(({ message }) => (
          <Text key={message} size="sm" c="var(--mantine-color-error)">
            {message}
          </Text>
        ))}
        <Group justify="space-between">
          <Checkbox
            label="Hidden from callers"
            checked={row.hidden}
            onChange={(event) => onChange({ hidden: event.currentTarget.checked })}
          />
          <Group gap={4}>
            <ActionIcon
              variant="default"
              aria-label={`Move ${label} up`}
              disabled={index === 0}
              onClick={() => onMove(index - 1)}
            >
              <IconArrowUp size={14} />
            </ActionIcon>
            <ActionIcon
              variant="default"
              aria-label={`Move ${label} down`}
              disabled={index === count - 1}
              onClick={() => onMove(index + 1)}
            >
              <IconArrowDown size={14} />
            </ActionIcon>
            <ActionIcon variant="default" aria-label={`Remove ${label}`} onClick={onRemove}>
              <IconTrash size={14} />
            </ActionIcon>
          </Group>
        </Group>
      </Stack>
    </Fieldset>
  );
}
