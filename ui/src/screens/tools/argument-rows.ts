/** The rows of the argument editor, and the declaration that they make. Pure. */
import type { ArgumentDeclaration, ToolDeclaration } from '../../api/types';
import { isObject, type Json, type Schema } from '../../components/schema-form/schema';

export const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array'] as const;

/** One declared argument as it is edited. Texts are kept as they are typed, also when they cannot be used. */
export interface ArgumentRow {
  /** Identifies the row while it is edited: names change and may be equal. */
  id: number;
  name: string;
  type: string;
  description: string;
  /** Empty: the server's schema decides. */
  required: '' | 'yes' | 'no';
  /** JSON, or empty. */
  enumText: string;
  defaultText: string;
  /** A fixed value: callers cannot give another. */
  valueText: string;
  hidden: boolean;
  /** What the editor has no field for. */
  rest: Partial<ArgumentDeclaration>;
}

const json = (value: unknown) => (value === undefined ? '' : JSON.stringify(value));

let next = 1;

export function rowOf(argument: ArgumentDeclaration): ArgumentRow {
  const { name, type, description, required, enum: choices, default: preset, value, hidden, ...rest } = argument;
  next += 1;
  return {
    id: next,
    name,
    type: type ?? '',
    description: description ?? '',
    required: required === undefined ? '' : required ? 'yes' : 'no',
    enumText: json(choices),
    defaultText: json(preset),
    valueText: json(value),
    hidden: hidden === true,
    rest,
  };
}

/** A row for an argument of the server: what is not said comes from there. */
export function rowOfServer(name: string, schema: Schema): ArgumentRow {
  const type = typeof schema.type === 'string' ? schema.type : 'string';
  return rowOf({ name, type, description: typeof schema.description === 'string' ? schema.description : name });
}

/** Reads a field that holds JSON. Text that is not JSON is a plain text: `red` is `"red"`. */
function read(text: string): Json | undefined {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

export function argumentOf(row: ArgumentRow): ArgumentDeclaration {
  const choices = read(row.enumText);
  const preset = read(row.defaultText);
  const value = read(row.valueText);
  return {
    name: row.name.trim(),
    ...(row.type === '' ? {} : { type: row.type }),
    ...(row.description === '' ? {} : { description: row.description }),
    ...(row.required === '' ? {} : { required: row.required === 'yes' }),
    ...(choices === undefined
      ? {}
      : {
          enum: (Array.isArray(choices)
            ? choices
            : String(choices)
                .split(',')
                .map((each) => read(each.trim()))) as never,
        }),
    ...(preset === undefined ? {} : { default: preset as never }),
    ...(value === undefined ? {} : { value: value as never }),
    ...(row.hidden ? { hidden: true } : {}),
    ...row.rest,
  } as ArgumentDeclaration;
}

export function declarationOf(
  before: ToolDeclaration | null,
  rows: ArgumentRow[],
  description: string,
): ToolDeclaration {
  const { arguments: _arguments, description: _description, ...rest } = before ?? {};
  return {
    ...rest,
    ...(description.trim() === '' ? {} : { description }),
    ...(rows.length === 0 ? {} : { arguments: rows.map(argumentOf) }),
  } as ToolDeclaration;
}

/** Faults that the page sees by itself, by the index of the row. */
export function faults(rows: ArgumentRow[]): Map<number, string> {
  const found = new Map<number, string>();
  const seen = new Map<string, number>();
  rows.forEach((row, index) => {
    const name = row.name.trim();
    if (name === '') found.set(index, 'An argument needs a name');
    else if (seen.has(name)) found.set(index, `“${name}” is declared twice`);
    seen.set(name, index);
  });
  return found;
}

/** What stands for a secret: the board shows it in its place, and takes it as "the value that it has". */
const SECRET = '***';

/** A row as it is kept in the tab. A fixed value may be a credential: what was typed is left out. */
export function keptRow(row: ArgumentRow): ArgumentRow & { isForgotten?: boolean } {
  const isPlain = row.valueText === '' || row.valueText === json(SECRET);
  return isPlain ? row : { ...row, valueText: '', isForgotten: true };
}

/** A row of before a reload, with an id of this page. */
export function restoredRow(row: ArgumentRow): ArgumentRow {
  next += 1;
  return { ...row, id: next };
}

/** The entry as the file will have it, for the eyes of a reader: fixed values are covered, limits stand with the rest. */
export function entryShown(name: string, declaration: ToolDeclaration | null): unknown {
  if (declaration === null) return undefined;
  const { limits, arguments: list, ...rest } = declaration;
  const cover = ({ value, ...argument }: ArgumentDeclaration) =>
    value === undefined ? argument : { ...argument, value: value === SECRET ? SECRET : `${SECRET} (new)` };
  return { name, ...rest, ...(list == null ? {} : { arguments: list.map(cover) }), ...limits };
}

export function moved<T>(list: T[], from: number, to: number): T[] {
  if (to < 0 || to >= list.length) return list;
  const copy = [...list];
  copy.splice(to, 0, ...copy.splice(from, 1));
  return copy;
}

/** The arguments of the server that no row declares. */
export function undeclared(schema: Schema | undefined, rows: ArgumentRow[]): [string, Schema][] {
  const names = new Set(rows.map(({ name }) => name.trim()));
  const properties = isObject(schema?.properties) ? schema.properties : {};
  return Object.entries(properties).flatMap(([name, property]) =>
    names.has(name) ? [] : [[name, isObject(property) ? property : {}] as [string, Schema]],
  );
}
