/** JSON Schema as far as a form can draw it. What it cannot draw gets a JSON field. Pure. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
export type Schema = { [key: string]: unknown };

export type FieldKind = 'string' | 'number' | 'integer' | 'boolean' | 'enum' | 'array' | 'object' | 'choice' | 'json';

const MAX_DEPTH = 6;

export function isObject(value: unknown): value is { [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Follows `$ref`s within the document. A reference that leads nowhere gives an empty schema, which takes anything. */
export function resolve(schema: unknown, root: Schema): Schema {
  let current = schema;
  for (let step = 0; step < 16; step += 1) {
    if (!isObject(current)) return {};
    const reference = current.$ref;
    if (typeof reference !== 'string') return current;
    if (!reference.startsWith('#')) return {};
    let target: unknown = root;
    for (const part of reference.slice(1).split('/').filter(Boolean)) {
      const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
      target = isObject(target) ? target[key] : undefined;
    }
    const { $ref: _followed, ...rest } = current;
    current = isObject(target) ? { ...target, ...rest } : {};
  }
  return {};
}

function types(schema: Schema): string[] {
  if (typeof schema.type === 'string') return [schema.type];
  return Array.isArray(schema.type) ? schema.type.filter((type) => typeof type === 'string') : [];
}

/** The alternatives of `anyOf` or `oneOf`, without `null`. */
export function branches(schema: Schema, root: Schema): Schema[] {
  const listed = Array.isArray(schema.anyOf) ? schema.anyOf : Array.isArray(schema.oneOf) ? schema.oneOf : [];
  return listed.map((branch) => resolve(branch, root)).filter((branch) => branch.type !== 'null');
}

export function takesNull(schema: Schema, root: Schema): boolean {
  if (types(schema).includes('null') || schema.const === null) return true;
  if (Array.isArray(schema.enum) && schema.enum.includes(null)) return true;
  const listed = [schema.anyOf, schema.oneOf].filter(Array.isArray).flat();
  return listed.some((branch) => resolve(branch, root).type === 'null');
}

/** A schema whose only alternative is `null` is the other one. */
export function simplified(schema: unknown, root: Schema): Schema {
  const resolved = resolve(schema, root);
  const alternatives = branches(resolved, root);
  if (alternatives.length !== 1 || types(resolved).length > 0) return resolved;
  const { anyOf: _any, oneOf: _one, ...rest } = resolved;
  return { ...alternatives[0], ...rest };
}

/** How a field of this schema is drawn. `depth` ends recursive schemas. */
export function kindOf(schema: Schema, root: Schema, depth: number): FieldKind {
  if (depth > MAX_DEPTH) return 'json';
  if (Array.isArray(schema.enum) || choicesOf(schema).length > 0) return 'enum';
  const named = types(schema).filter((type) => type !== 'null');
  if (named.length === 0 && branches(schema, root).length > 1) return 'choice';
  if (named.length === 0 && isObject(schema.properties)) return 'object';
  if (named.length !== 1) return 'json';
  switch (named[0]) {
    case 'string':
    case 'number':
    case 'integer':
    case 'boolean':
      return named[0];
    case 'array':
      return isObject(schema.items) ? 'array' : 'json';
    case 'object':
      return isObject(schema.properties) && Object.keys(schema.properties).length > 0 ? 'object' : 'json';
    default:
      return 'json';
  }
}

export function enumValues(schema: Schema): Json[] {
  return choicesOf(schema)
    .map(({ value }) => value)
    .filter((value) => value !== null);
}

export interface Choice {
  value: Json;
  /** What a person reads instead of the value. */
  title?: string;
}

/** The values to choose from, with their titles: `enum`, `const`, alternatives that are constants, and `enumNames`. */
export function choicesOf(schema: Schema): Choice[] {
  const titles = Array.isArray(schema.enumNames) ? (schema.enumNames as unknown[]) : [];
  if (Array.isArray(schema.enum)) return (schema.enum as Json[]).map((value, at) => choice(value, titles[at]));
  if ('const' in schema) return [choice(schema.const as Json, schema.title)];
  const listed = [schema.oneOf, schema.anyOf].find(Array.isArray) ?? [];
  return listed.every((each) => isObject(each) && 'const' in each)
    ? listed.map((each: Schema) => choice(each.const as Json, each.title))
    : [];
}

const choice = (value: Json, title: unknown): Choice => (typeof title === 'string' ? { value, title } : { value });

export interface Property {
  name: string;
  schema: Schema;
  required: boolean;
}

/** The properties of an object, required ones first, each group in the order of the schema. */
export function propertiesOf(schema: Schema, root: Schema): Property[] {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const all = Object.entries(isObject(schema.properties) ? schema.properties : {}).map(([name, property]) => ({
    name,
    schema: simplified(property, root),
    required: required.has(name),
  }));
  return [...all.filter((property) => property.required), ...all.filter((property) => !property.required)];
}

/** The value that a field begins with when a person chooses to send one. */
export function firstValue(schema: Schema, root: Schema, depth = 0): Json {
  if (schema.default !== undefined) return schema.default as Json;
  switch (kindOf(schema, root, depth)) {
    case 'string':
      return '';
    case 'number':
    case 'integer':
      return typeof schema.minimum === 'number' ? schema.minimum : 0;
    case 'boolean':
      return false;
    case 'enum':
      return enumValues(schema)[0] ?? null;
    case 'array':
      return [];
    case 'choice':
      return firstValue(branches(schema, root)[0] ?? {}, root, depth + 1);
    case 'object':
      return {};
    case 'json':
      return types(schema).includes('array') ? [] : {};
  }
}

/** Whether a value could be meant for this alternative: enough to show the right one. */
export function fits(value: Json, schema: Schema, root: Schema): boolean {
  switch (kindOf(schema, root, 0)) {
    case 'string':
      return typeof value === 'string';
    case 'number':
    case 'integer':
      return typeof value === 'number';
    case 'boolean':
      return typeof value === 'boolean';
    case 'enum':
      return enumValues(schema).some((each) => JSON.stringify(each) === JSON.stringify(value));
    case 'array':
      return Array.isArray(value);
    case 'object': {
      if (!isObject(value)) return false;
      const names = new Set(propertiesOf(schema, root).map(({ name }) => name));
      const required = propertiesOf(schema, root).filter((property) => property.required);
      return required.every(({ name }) => name in value) && Object.keys(value).every((name) => names.has(name));
    }
    case 'choice':
    case 'json':
      return types(schema).length === 0 || types(schema).includes(Array.isArray(value) ? 'array' : typeof value);
  }
}

/** One segment of a JSON pointer. */
export function segment(name: string | number): string {
  return `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
