/** Changes of a session that are not made yet, and every tool with its switch and the reason for its state. Pure. */
import type { components } from '../../api/schema';

type Schemas = components['schemas'];

/** A part of `SessionChange`: what is absent stays as it is. */
export interface SessionDraft {
  servers?: string[] | null;
  toolsets?: Record<string, boolean>;
  tools?: Record<string, boolean | null>;
}

export const isEmpty = ({ servers, toolsets, tools }: SessionDraft): boolean =>
  servers === undefined && toolsets === undefined && tools === undefined;

export const countOf = ({ servers, toolsets, tools }: SessionDraft): number =>
  (servers === undefined ? 0 : 1) + Object.keys(toolsets ?? {}).length + Object.keys(tools ?? {}).length;

function without<T>(record: Record<string, T> | undefined, names: string[]): Record<string, T> | undefined {
  const kept = Object.entries(record ?? {}).filter(([name]) => !names.includes(name));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** The draft with a toolset switched. A switch back to what is in force is no change. */
export function switchToolset(draft: SessionDraft, name: string, isOn: boolean, now: boolean): SessionDraft {
  const toolsets = without(draft.toolsets, [name]);
  return tidy({ ...draft, toolsets: isOn === now ? toolsets : { ...toolsets, [name]: isOn } });
}

/** The draft with tools switched: `null` leaves them to their toolsets. `switches` are those that are in force. */
export function switchTools(
  draft: SessionDraft,
  rows: Pick<ToolRow, 'canonical' | 'enabled' | 'own'>[],
  to: boolean | null,
): SessionDraft {
  const kept = without(
    draft.tools,
    rows.map(({ canonical }) => canonical),
  );
  const changed = rows.filter(({ enabled, own }) => (to === null ? own !== undefined : enabled !== to));
  const tools = { ...kept, ...Object.fromEntries(changed.map(({ canonical }) => [canonical, to])) };
  return tidy({ ...draft, tools: Object.keys(tools).length === 0 ? undefined : tools });
}

/** The draft with other servers bound; `null` stands for all. */
export function bind(draft: SessionDraft, servers: string[] | null, now: string[] | null | undefined): SessionDraft {
  const same = (a: string[] | null, b: string[] | null) =>
    a === b || (a !== null && b !== null && a.length === b.length && a.every((name) => b.includes(name)));
  return tidy({ ...draft, servers: same(servers, now ?? null) ? undefined : servers });
}

function tidy({ servers, toolsets, tools }: SessionDraft): SessionDraft {
  return {
    ...(servers === undefined ? {} : { servers }),
    ...(toolsets === undefined ? {} : { toolsets }),
    ...(tools === undefined ? {} : { tools }),
  };
}

export interface ToolRow {
  canonical: string;
  server: string;
  tool: string;
  description: string;
  /** The name that models see, while it is on. */
  shown?: string;
  enabled: boolean;
  available: boolean;
  /** The switch of the tool itself, if it has one. */
  own?: boolean;
  because: string;
}

/** What decided whether a session gets a tool, in the words of the board. */
export interface Standing {
  reason: string;
  toolsets: string[];
  not_for?: string[];
}

/** A tool of `GET /sessions/{id}/tools?all=true`. */
export interface StandingTool extends Pick<
  Schemas['SessionTool'],
  'name' | 'canonical_name' | 'server' | 'tool' | 'description' | 'available'
> {
  enabled?: boolean;
  because?: Standing;
}

function standingWords({ reason, toolsets, not_for }: Standing, enabled: boolean, server: string): string {
  const sets = toolsets.join(', ');
  const except = not_for && not_for.length > 0 ? `, not for ${not_for.join(', ')}` : '';
  switch (reason) {
    case 'tool':
      return `${enabled ? 'switched on here' : 'switched off here'}${except}`;
    case 'toolset':
      return `${enabled ? 'in' : 'off with'} ${sets}${except}`;
    case 'default':
      return enabled ? `shown to every session${except}` : `not shown at first${sets ? `; ${sets} would add it` : ''}`;
    case 'binding':
      return `the session is not bound to ${server}`;
    case 'policy':
      return 'hidden by the configuration';
    default:
      return reason;
  }
}

/** The rows of a board that says itself what decided each tool; `undefined` if it does not. */
export function standingRows(tools: StandingTool[], own: Record<string, boolean>): ToolRow[] | undefined {
  if (tools.length === 0 || tools.every(({ enabled }) => enabled === undefined)) return undefined;
  return tools.map((tool) => {
    const enabled = tool.enabled ?? true;
    return {
      canonical: tool.canonical_name,
      server: tool.server,
      tool: tool.tool,
      description: tool.description ?? '',
      shown: enabled ? tool.name : undefined,
      enabled,
      available: tool.available,
      own: own[tool.canonical_name],
      because: tool.because ? standingWords(tool.because, enabled, tool.server) : '',
    };
  });
}

interface Known {
  session: Pick<Schemas['SessionView'], 'tools' | 'servers' | 'disabled_toolsets'>;
  tools: Pick<Schemas['SessionTool'], 'name' | 'canonical_name' | 'server' | 'tool' | 'description' | 'available'>[];
  catalog: Pick<Schemas['ToolView'], 'name' | 'server' | 'tool' | 'description' | 'available'>[];
  toolsets: Pick<Schemas['SessionToolset'], 'name' | 'enabled'>[];
  members: Pick<Schemas['ToolsetView'], 'name' | 'members'>[];
}

/** Every tool of the board and of the session's own servers, with its state in the session and the reason for it. */
export function toolRows({ session, tools, catalog, toolsets, members }: Known): ToolRow[] {
  const on = new Map(tools.map((tool) => [tool.canonical_name, tool]));
  const isOn = new Map(toolsets.map(({ name, enabled }) => [name, enabled]));
  const setsOf = new Map<string, string[]>();
  for (const { name, members: names } of members) {
    for (const tool of names) setsOf.set(tool, [...(setsOf.get(tool) ?? []), name]);
  }
  const because = (name: string, server: string, enabled: boolean): string => {
    const own = session.tools[name];
    if (own === true && enabled) return 'switched on here';
    if (own === false && !enabled) return 'switched off here';
    const sets = setsOf.get(name) ?? [];
    if (enabled) {
      const through = sets.filter((set) => isOn.get(set));
      return through.length === 0 ? 'shown to every session' : `in ${through.join(', ')}`;
    }
    if (session.servers && !session.servers.includes(server)) return `the session is not bound to ${server}`;
    const off = sets.filter((set) => session.disabled_toolsets.includes(set));
    if (off.length > 0) return `off with ${off.join(', ')}`;
    if (sets.length > 0 && sets.every((set) => isOn.get(set) === false)) return `off with ${sets.join(', ')}`;
    return 'not shown by the board';
  };
  const row = (name: string, entry: Omit<Known['tools'][number], 'name' | 'canonical_name'>): ToolRow => {
    const seen = on.get(name);
    const enabled = seen !== undefined;
    return {
      canonical: name,
      server: entry.server,
      tool: entry.tool,
      description: entry.description ?? '',
      shown: seen?.name,
      enabled,
      available: seen?.available ?? entry.available,
      own: session.tools[name],
      because: because(name, entry.server, enabled),
    };
  };
  const rows = catalog.map((entry) => row(entry.name, entry));
  const known = new Set(catalog.map(({ name }) => name));
  for (const tool of tools) if (!known.has(tool.canonical_name)) rows.push(row(tool.canonical_name, tool));
  return rows;
}

/** The state that a row would have after the draft, as far as its own switch decides it. */
export const stagedState = (row: ToolRow, draft: SessionDraft): boolean => draft.tools?.[row.canonical] ?? row.enabled;

export interface RowFilter {
  text: string;
  server: string;
  state: string;
}

/** The rows that hold every word, of one server and one state if these are given. */
export function matchingRows(rows: ToolRow[], { text, server, state }: RowFilter): ToolRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    if (server !== '' && row.server !== server) return false;
    if (state === 'on' && !row.enabled) return false;
    if (state === 'off' && row.enabled) return false;
    if (state === 'switched' && row.own === undefined) return false;
    const all = `${row.canonical} ${row.description}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
