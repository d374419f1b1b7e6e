/** What each provider is told of the tools of a session, brought into one table. Pure. */
import type { components } from '../../api/schema';

type Schemas = components['schemas'];

export interface Rendering extends Omit<Schemas['RenderingView'], 'tools' | 'delta'> {
  delta?: Delta | null;
}

/** What changed since an earlier revision, and how the conversation can be told. */
export interface Delta {
  added: string[];
  removed: string[];
  changed: string[];
  apply: string;
  items?: unknown[];
  remains?: string[];
  reason?: string;
  place?: string;
}

export interface Cell {
  tokens: number;
  rewrites: Schemas['RewriteView'][];
  declaration: unknown;
}

export interface Row {
  name: string;
  cells: Record<string, Cell>;
  /** Why a provider does not get it. */
  missing: Record<string, { kind: 'quarantined' | 'left out'; reason: string }>;
  /** The largest cost of all providers. */
  most: number;
}

/** One row for each tool that some provider gets or is denied, in the order of the first rendering. */
export function rowsOf(renderings: Rendering[]): Row[] {
  const rows = new Map<string, Row>();
  const row = (name: string): Row => {
    let found = rows.get(name);
    if (found === undefined) {
      found = { name, cells: {}, missing: {}, most: 0 };
      rows.set(name, found);
    }
    return found;
  };
  for (const { provider, explained, quarantined, left_out } of renderings) {
    for (const tool of explained ?? []) {
      const entry = row(tool.name);
      entry.cells[provider] = { tokens: tool.tokens, rewrites: tool.rewrites, declaration: tool.declaration };
      entry.most = Math.max(entry.most, tool.tokens);
    }
    for (const { name, reason } of quarantined) row(name).missing[provider] = { kind: 'quarantined', reason };
    for (const { name, reason } of left_out) row(name).missing[provider] = { kind: 'left out', reason };
  }
  return [...rows.values()];
}

export function matchingRows(rows: Row[], text: string, only: string): Row[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    if (only === 'rewritten' && !Object.values(row.cells).some(({ rewrites }) => rewrites.length > 0)) return false;
    if (only === 'missing' && Object.keys(row.missing).length === 0) return false;
    return words.every((word) => row.name.toLowerCase().includes(word));
  });
}

export const isExact = ({ tokens }: Pick<Rendering, 'tokens'>): boolean => tokens.basis.precision !== 'estimate';
