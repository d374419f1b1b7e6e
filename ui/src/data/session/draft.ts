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

type Standing = Schemas['ToolStandingView'];
type StandingTool = Omit<Schemas['SessionTool'], 'input_schema'>;

function standingWords({ reason, toolsets, not_for }: Standing, enabled: boolean, server: string): string {
  const sets = toolsets.join(', ');
  const except = not_for.length > 0 ? `, not for ${not_for.join(', ')}` : '';
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

/** Every tool that a session could have, with its switch and what decided its state. */
export function toolRows(tools: StandingTool[], own: Record<string, boolean>): ToolRow[] {
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
