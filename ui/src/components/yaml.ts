/** Values as YAML, as the configuration file has them. Pure. */
const WORDS = new Set(['true', 'false', 'null', 'yes', 'no', 'on', 'off', 'y', 'n']);

/** A text as a scalar that is read as text, whatever it holds. JSON strings are YAML strings. */
export const scalar = (text: string): string =>
  /^[A-Za-z][A-Za-z0-9 _./-]*$/.test(text) && !text.endsWith(' ') && !WORDS.has(text.toLowerCase())
    ? text
    : JSON.stringify(text);

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

const isBranch = (value: Json): value is Json[] | { [key: string]: Json } =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0;

function leaf(value: Json): string {
  return typeof value === 'string' ? scalar(value) : JSON.stringify(value);
}

function lines(value: Json, depth: string): string[] {
  if (!isBranch(value)) return [depth + leaf(value)];
  if (Array.isArray(value)) {
    return value.flatMap((item) => {
      const [first, ...rest] = lines(item, `${depth}  `);
      return [`${depth}- ${first.trimStart()}`, ...rest];
    });
  }
  return Object.entries(value).flatMap(([key, item]) =>
    isBranch(item)
      ? [`${depth}${scalar(key)}:`, ...lines(item, `${depth}  `)]
      : [`${depth}${scalar(key)}: ${leaf(item)}`],
  );
}

/** The text of a value. Members without a value are left out; `undefined` is no text. */
export function yaml(value: unknown): string {
  if (value === undefined) return '';
  return lines(JSON.parse(JSON.stringify(value)) as Json, '').join('\n');
}
