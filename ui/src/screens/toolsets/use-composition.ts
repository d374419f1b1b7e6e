import { useEffect, useState } from 'react';
import { keepForm, keptForm } from '../../components/form-draft';
import type { ToolsetEntry } from '../../data/toolsets/entry';

/** A toolset that is put together. */
export interface Composition {
  name: string;
  description: string;
  when_to_use: string;
  /** Names and patterns of tools. */
  tools: string[];
  servers: string[];
}

const EMPTY: Composition = { name: '', description: '', when_to_use: '', tools: [], servers: [] };

const isComposition = (value: unknown): value is { value: Composition; etag?: string } =>
  typeof value === 'object' &&
  value !== null &&
  'value' in value &&
  Object.keys(EMPTY).every((key) => key in (value.value as object));

export function compositionOf(name: string, entry: ToolsetEntry): Composition {
  const { description = '', when_to_use = '', tools = [], servers = [] } = entry;
  return { name, description, when_to_use, tools, servers };
}

/**
 * The toolset that is being edited. It survives a reload and a restart of the board, with the version of the entry that the
 * edits began with.
 */
export function useComposition(form: string, start: Partial<Composition>, etag?: string) {
  const first = { ...EMPTY, ...start };
  const [state, setState] = useState(() => keptForm(form, isComposition) ?? { value: first, etag });
  const isChanged = JSON.stringify(state.value) !== JSON.stringify(first);
  useEffect(() => keepForm(form, isChanged ? state : undefined), [form, state, isChanged]);
  return {
    draft: state.value,
    etag: state.etag,
    isChanged,
    change: (part: Partial<Composition>) => setState((old) => ({ ...old, value: { ...old.value, ...part } })),
    reset: () => setState({ value: first, etag }),
    forget: () => keepForm(form, undefined),
  };
}
