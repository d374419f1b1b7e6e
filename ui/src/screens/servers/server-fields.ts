/** The fields of the form of a server, and the entry that they make. Pure. */
import type { components } from '../../api/schema';
import { withoutCredentials } from '../../components/form-draft';

export type ServerDeclaration = components['schemas']['ServerDeclaration'];

export interface ServerFields {
  name: string;
  url: string;
  /** Typed here; empty keeps the present one. */
  token: string;
  mode: string;
  instances: number | string;
  required: boolean;
  /** Names or patterns, separated by commas; empty for no list. */
  allow: string;
  deny: string;
}

const EMPTY: ServerFields = {
  name: '',
  url: '',
  token: '',
  mode: 'dynamic',
  instances: 5,
  required: false,
  allow: '',
  deny: '',
};

export function fieldsOf(name: string, declared: ServerDeclaration | undefined): ServerFields {
  if (declared === undefined) return { ...EMPTY, name };
  return {
    name,
    url: declared.url ?? '',
    token: '',
    mode: declared.mode ?? '',
    instances: declared.default_tool_config?.max_instances ?? '',
    required: declared.required === true,
    allow: (declared.tool_allowlist ?? []).join(', '),
    deny: (declared.tool_denylist ?? []).join(', '),
  };
}

const listed = (text: string): string[] =>
  text
    .split(',')
    .map((each) => each.trim())
    .filter(Boolean);

/** The entry with the fields in it. What the form has no field for stays as it is declared. */
export function entryOf(fields: ServerFields, declared: ServerDeclaration | undefined): ServerDeclaration {
  const { url: _url, mode: _mode, required, default_tool_config, ...others } = declared ?? {};
  const { tool_allowlist: _allow, tool_denylist: _deny, ...rest } = others;
  const { max_instances: _instances, ...limits } = default_tool_config ?? {};
  const count = Number(fields.instances);
  const config = { ...limits, ...(fields.instances === '' || !(count > 0) ? {} : { max_instances: count }) };
  const [allow, deny] = [listed(fields.allow), listed(fields.deny)];
  return {
    ...(fields.url.trim() === '' ? {} : { url: fields.url.trim() }),
    ...(fields.mode === '' ? {} : { mode: fields.mode }),
    ...(fields.required || required !== undefined || declared === undefined ? { required: fields.required } : {}),
    ...(Object.keys(config).length === 0 ? {} : { default_tool_config: config }),
    ...(allow.length === 0 ? {} : { tool_allowlist: allow }),
    ...(deny.length === 0 ? {} : { tool_denylist: deny }),
    ...rest,
    ...(fields.token === '' ? {} : { auth: { bearer: fields.token } }),
  } as ServerDeclaration;
}

/** The entry for the eyes of a reader: what was typed as a token is covered, and so are credentials in the address. */
export function entryShown(name: string, entry: ServerDeclaration | undefined, token: string): unknown {
  if (entry === undefined) return undefined;
  const { url, ...rest } = entry;
  return {
    name,
    ...(url === undefined ? {} : { url: withoutCredentials(url) }),
    ...rest,
    ...(token === '' ? {} : { auth: { bearer: '*** (new)' } }),
  };
}

/** What the tab may keep of the fields. */
export const keptFields = (fields: ServerFields): ServerFields => ({
  ...fields,
  token: '',
  url: withoutCredentials(fields.url),
});

export const isServerFields = (value: unknown): value is ServerFields =>
  typeof value === 'object' && value !== null && Object.keys(EMPTY).every((key) => key in value);
