import { Button, Fieldset, Group, Input, NativeSelect, Stack, Text, Textarea } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import { useId, useState } from 'react';
import type { FieldError } from '../../api/problem';
import {
  branches,
  type Choice,
  choicesOf,
  firstValue,
  fits,
  isObject,
  type Json,
  type JsonObject,
  kindOf,
  propertiesOf,
  type Schema,
  segment,
  simplified,
  takesNull,
} from './schema';

export interface FieldProps {
  name: string;
  pointer: string;
  schema: Schema;
  root: Schema;
  required: boolean;
  /** `undefined` means that it is left out. */
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  errors: FieldError[];
  depth: number;
}

const LEFT_OUT = 'left out';
const NULL = 'null';
const SENT = 'sent';

/** Whether the value is sent, null, or left out. */
function Presence({ field, label }: { field: FieldProps; label: string }) {
  const { schema, root, value, onChange } = field;
  const mode = value === undefined ? LEFT_OUT : value === null ? NULL : SENT;
  const choices = [
    { value: SENT, label: value === '' ? 'empty' : 'sent' },
    { value: LEFT_OUT, label: 'left out' },
    ...(takesNull(schema, root) || value === null ? [{ value: NULL, label: 'null' }] : []),
  ];
  return (
    <NativeSelect
      size="xs"
      w={96}
      aria-label={`How ${label} is sent`}
      data={choices}
      value={mode}
      onChange={({ currentTarget }) => {
        const wanted = currentTarget.value;
        if (wanted === mode) return;
        onChange(wanted === LEFT_OUT ? undefined : wanted === NULL ? null : firstValue(schema, root));
      }}
    />
  );
}

function about(schema: Schema): string {
  const parts: string[] = [];
  if (typeof schema.description === 'string') parts.push(schema.description);
  if (schema.minimum !== undefined) parts.push(`At least ${String(schema.minimum)}.`);
  if (schema.maximum !== undefined) parts.push(`At most ${String(schema.maximum)}.`);
  return parts.join(' ');
}

function placeholder(schema: Schema): string {
  return schema.default === undefined ? '' : `${JSON.stringify(schema.default)} unless sent`;
}

export function Field(props: FieldProps) {
  const { name, schema, root, required, pointer, errors, depth } = props;
  const id = useId();
  const kind = kindOf(schema, root, depth);
  const own = errors.filter(({ path }) => path === pointer).map(({ message }) => message);
  const description = about(schema);
  if (kind === 'object' || kind === 'array')
    return <Nested {...props} kind={kind} own={own} description={description} />;
  return (
    <Input.Wrapper
      id={id}
      label={<span className="mono">{name}</span>}
      required={required}
      description={description === '' ? undefined : description}
      error={own.length > 0 ? own.join('; ') : undefined}
      inputWrapperOrder={['label', 'description', 'input', 'error']}
    >
      <Group gap="xs" wrap="nowrap" align="flex-start">
        <div className="grow">
          <Editor {...props} kind={kind} id={id} invalid={own.length > 0} />
        </div>
        <Presence field={props} label={name} />
      </Group>
    </Input.Wrapper>
  );
}

interface EditorProps extends FieldProps {
  id: string;
  invalid: boolean;
  kind: ReturnType<typeof kindOf>;
}

function Editor(props: EditorProps) {
  const { kind, schema, value, onChange, id, invalid, name } = props;
  if (value === null) return <Input id={id} disabled placeholder="null is sent" />;
  switch (kind) {
    case 'boolean':
    case 'enum': {
      const choices: Choice[] =
        kind === 'boolean'
          ? [{ value: true }, { value: false }]
          : choicesOf(schema).filter((each) => each.value !== null);
      const listed = choices.map((each) => JSON.stringify(each.value));
      const current = value === undefined ? '' : JSON.stringify(value);
      const data = [
        { value: '', label: placeholder(schema) || '—' },
        ...choices.map((each) => ({
          value: JSON.stringify(each.value),
          label: each.title ?? (typeof each.value === 'string' ? each.value : JSON.stringify(each.value)),
        })),
        ...(current === '' || listed.includes(current) ? [] : [{ value: current, label: current }]),
      ];
      return (
        <NativeSelect
          id={id}
          data={data}
          error={invalid}
          value={current}
          onChange={({ currentTarget }) =>
            onChange(currentTarget.value === '' ? undefined : (JSON.parse(currentTarget.value) as Json))
          }
        />
      );
    }
    case 'number':
    case 'integer':
      return <NumberEditor {...props} />;
    case 'string': {
      const isLong =
        schema.contentMediaType !== undefined ||
        (typeof value === 'string' && (value.includes('\n') || value.length > 80));
      return (
        <Textarea
          id={id}
          error={invalid}
          autosize
          minRows={isLong ? 3 : 1}
          maxRows={14}
          placeholder={placeholder(schema)}
          value={typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      );
    }
    case 'choice':
      return <Choice {...props} />;
    default:
      return <JsonEditor key={name} {...props} />;
  }
}

/** Keeps what is typed, such as `1.` or `-`, until it is a number. What is none is kept as text, and the board says so. */
function NumberEditor({ id, invalid, schema, value, onChange }: EditorProps) {
  const shown =
    value === undefined
      ? ''
      : typeof value === 'number'
        ? String(value)
        : typeof value === 'string'
          ? value
          : JSON.stringify(value);
  const [typed, setTyped] = useState(shown);
  const isTyped = typed.trim() !== '' && Number(typed) === value;
  return (
    <Input
      id={id}
      error={invalid}
      inputMode="decimal"
      placeholder={placeholder(schema)}
      value={isTyped ? typed : shown}
      onChange={({ currentTarget }) => {
        const text = currentTarget.value;
        setTyped(text);
        const number = Number(text);
        onChange(text.trim() === '' ? undefined : Number.isFinite(number) ? number : text);
      }}
    />
  );
}

/** Anything that no other field can draw, as JSON. Text that is not JSON yet stays in the field and is not taken over. */
function JsonEditor({ id, value, onChange, invalid }: EditorProps) {
  const shown = value === undefined ? '' : JSON.stringify(value, null, 2);
  const [typed, setTyped] = useState<string | undefined>();
  const [fault, setFault] = useState<string | undefined>();
  return (
    <Textarea
      id={id}
      classNames={{ input: 'mono' }}
      autosize
      minRows={2}
      maxRows={14}
      placeholder="JSON"
      value={typed ?? shown}
      error={fault ?? invalid}
      onChange={({ currentTarget }) => {
        const text = currentTarget.value;
        setTyped(text);
        try {
          onChange(text.trim() === '' ? undefined : (JSON.parse(text) as Json));
          setFault(undefined);
        } catch {
          setFault('This is not JSON yet');
        }
      }}
      onBlur={() => {
        if (fault === undefined) setTyped(undefined);
      }}
    />
  );
}

/** One of several alternatives: the one that fits the value is drawn. */
function Choice(props: EditorProps) {
  const { schema, root, value, onChange, name, depth } = props;
  const alternatives = branches(schema, root);
  const fitting = value === undefined ? -1 : alternatives.findIndex((branch) => fits(value, branch, root));
  const [chosen, setChosen] = useState<number | undefined>();
  const at = chosen !== undefined && chosen < alternatives.length ? chosen : Math.max(0, fitting);
  const label = (branch: Schema, index: number) =>
    String(
      branch.title ??
        branch.description ??
        (Array.isArray(branch.type) ? branch.type.join(' or ') : (branch.type ?? `form ${index + 1}`)),
    );
  return (
    <Stack gap={6}>
      <NativeSelect
        size="xs"
        aria-label={`Form of ${name}`}
        data={alternatives.map((branch, index) => ({ value: String(index), label: label(branch, index) }))}
        value={String(at)}
        onChange={({ currentTarget }) => {
          const next = Number(currentTarget.value);
          setChosen(next);
          onChange(firstValue(alternatives[next], root));
        }}
      />
      <Field
        {...props}
        schema={simplified(alternatives[at] ?? {}, root)}
        onChange={onChange}
        depth={depth + 1}
        required={false}
      />
    </Stack>
  );
}

interface NestedProps extends FieldProps {
  kind: 'object' | 'array';
  own: string[];
  description: string;
}

/** An object or a list: a group of fields. */
function Nested({ kind, own, description, ...props }: NestedProps) {
  const { name, schema, root, required, value, pointer, onChange, errors, depth } = props;
  const items = Array.isArray(value) ? value : [];
  const members: JsonObject = isObject(value) ? (value as JsonObject) : {};
  const itemSchema = simplified(schema.items, root);
  return (
    <Fieldset
      legend={
        <>
          <span className="mono">{name}</span>
          {required && <span aria-hidden> *</span>}
        </>
      }
      p="sm"
    >
      <Stack gap="sm">
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <Text size="xs" c="dimmed">
            {description}
          </Text>
          <Presence field={props} label={name} />
        </Group>
        {value !== undefined &&
          value !== null &&
          kind === 'object' &&
          propertiesOf(schema, root).map((property) => (
            <Field
              key={property.name}
              {...property}
              pointer={pointer + segment(property.name)}
              root={root}
              value={members[property.name]}
              onChange={(next) => {
                const { [property.name]: _before, ...rest } = members;
                onChange(next === undefined ? rest : { ...members, [property.name]: next });
              }}
              errors={errors}
              depth={depth + 1}
            />
          ))}
        {kind === 'array' &&
          items.map((item, index) => (
            <Group key={index} gap="xs" align="flex-end" wrap="nowrap">
              <div className="grow">
                <Field
                  name={String(index)}
                  pointer={pointer + segment(index)}
                  schema={itemSchema}
                  root={root}
                  required={false}
                  value={item}
                  onChange={(next) => onChange(items.map((each, at) => (at === index ? (next ?? null) : each)))}
                  errors={errors}
                  depth={depth + 1}
                />
              </div>
              <Button
                size="xs"
                variant="default"
                aria-label={`Remove ${name} ${index}`}
                onClick={() => onChange(items.filter((_, at) => at !== index))}
              >
                <IconTrash size={14} />
              </Button>
            </Group>
          ))}
        {kind === 'array' && value !== null && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlus size={14} />}
            onClick={() => onChange([...items, firstValue(itemSchema, root)])}
          >
            Add to {name}
          </Button>
        )}
        {own.map((message) => (
          <Text key={message} size="xs" c="var(--mantine-color-error)">
            {message}
          </Text>
        ))}
      </Stack>
    </Fieldset>
  );
}
