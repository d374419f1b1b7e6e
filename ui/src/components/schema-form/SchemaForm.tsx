import { Alert, Stack, Text } from '@mantine/core';
import type { FieldError } from '../../api/problem';
import { Field } from './Field';
import { type JsonObject, propertiesOf, type Schema, segment } from './schema';

export interface SchemaFormProps {
  schema: Schema;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
  /** What the board says about the arguments; each is shown at its field. */
  errors: FieldError[];
  /** What it says without any field. */
  empty?: string;
}

/** A form for the arguments of a tool. Left out, empty and null are three different things. */
export function SchemaForm({ schema, value, onChange, errors, empty }: SchemaFormProps) {
  const properties = propertiesOf(schema, schema);
  const names = new Set(properties.map(({ name }) => name));
  const unknown = Object.keys(value).filter((name) => !names.has(name));
  const change = (name: string) => (next: JsonObject[string] | undefined) => {
    const { [name]: _before, ...rest } = value;
    onChange(next === undefined ? rest : { ...value, [name]: next });
  };
  const elsewhere = errors.filter(
    ({ path }) => ![...names].some((name) => path === segment(name) || path.startsWith(`${segment(name)}/`)),
  );
  return (
    <Stack gap="md">
      {properties.length === 0 && <Text size="sm">{empty ?? 'This tool takes no arguments.'}</Text>}
      {properties.map(({ name, schema: property, required }) => (
        <Field
          key={name}
          name={name}
          pointer={segment(name)}
          schema={property}
          root={schema}
          required={required}
          value={value[name]}
          onChange={change(name)}
          errors={errors}
          depth={0}
        />
      ))}
      {unknown.length > 0 && (
        <Alert color="yellow" variant="light" title="Not in the schema">
          <Text size="sm">
            The draft also has {unknown.map((name) => `“${name}”`).join(', ')}. Look at it as JSON to keep or remove it.
          </Text>
        </Alert>
      )}
      {elsewhere.map(({ path, message }) => (
        <Text key={path + message} size="sm" c="var(--mantine-color-error)">
          {message}
        </Text>
      ))}
    </Stack>
  );
}
