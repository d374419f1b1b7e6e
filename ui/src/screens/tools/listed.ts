/** The rows of the table of tools, and which of them match. Pure. */
import type { ToolList, ToolsetList, ToolView } from '../../api/types';

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

export function rowsOf(list: ToolList): Row[] {
  const hidden = new Map((list.hidden ?? []).map((tool) => [tool.name, tool]));
  const why = ({ by, hint }: { by: string; hint: string | null }) => (hint === null ? by : `${by}. ${hint}`);
  const rows = list.tools.map((tool): Row => {
    const hiding = hidden.get(tool.name);
    hidden.delete(tool.name);
    const description = tool.description ?? tool.title ?? '';
    if (hiding !== undefined) return row(tool.name, tool.server, description, 'hidden', why(hiding), tool);
    if (tool.available) return row(tool.name, tool.server, description, 'available', undefined, tool);
    return row(tool.name, tool.server, description, 'away', `${tool.server} is not connected`, tool);
  });
  for (const tool of hidden.values()) {
    rows.push(row(tool.name, tool.server, tool.description ?? tool.title ?? '', 'hidden', why(tool)));
  }
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
