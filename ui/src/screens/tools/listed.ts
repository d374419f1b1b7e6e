/** The rows of the table of tools, and which of them match. Pure. */
import type { ToolList, ToolsetList, ToolView } from '../../api/types';

/** Why a tool is not offered to anybody. */
export interface Hidden {
  reason: string;
  by?: string | null;
}

export interface Row {
  name: string;
  server: string;
  description: string;
  state: 'available' | 'away' | 'hidden';
  why?: string;
  tool?: ToolView;
  /** Everything that the search looks at, in lower case. */
  text: string;
}

export interface Filters {
  text: string;
  server: string;
  toolset: string;
  state: string;
}

type Listed = ToolView & { hidden?: Hidden | null };

export function rowsOf(list: ToolList): Row[] {
  const rows = (list.tools as Listed[]).map((tool): Row => {
    const state = tool.hidden ? 'hidden' : tool.available ? 'available' : 'away';
    const why = tool.hidden
      ? [tool.hidden.reason, tool.hidden.by].filter(Boolean).join(' · ')
      : tool.available
        ? undefined
        : `${tool.server} is not connected`;
    return row(tool.name, tool.server, tool.description ?? tool.title ?? '', state, why, tool);
  });
  const known = new Set(rows.map(({ name }) => name));
  for (const { server, tool, reason } of list.quarantined) {
    const name = tool === null ? server : `${server}.${tool}`;
    if (!known.has(name)) rows.push(row(name, server, '', 'hidden', reason));
  }
  return rows;
}

function row(
  name: string,
  server: string,
  description: string,
  state: Row['state'],
  why?: string,
  tool?: ToolView,
): Row {
  const names = Object.keys((tool?.input_schema.properties as object | undefined) ?? {});
  const text = [name, tool?.title, description, tool?.toolset, ...names, why].filter(Boolean).join(' ').toLowerCase();
  return { name, server, description, state, why, tool, text };
}

export function filtered(rows: Row[], filters: Filters, toolsets: ToolsetList | undefined): Row[] {
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean);
  const members =
    filters.toolset === ''
      ? undefined
      : new Set(toolsets?.toolsets.find(({ name }) => name === filters.toolset)?.members);
  return rows.filter(
    ({ name, server, state, text }) =>
      (filters.server === '' || server === filters.server) &&
      (filters.state === '' || state === filters.state) &&
      (members === undefined || members.has(name)) &&
      words.every((word) => text.includes(word)),
  );
}
