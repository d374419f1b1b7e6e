/**
 * Drafts of arguments, one for each tool. They survive a reload and a restart of the board, and end with the tab: arguments
 * may hold what is nobody else's business.
 */
import { useCallback, useSyncExternalStore } from 'react';

export type JsonObject = { [key: string]: unknown };

export interface Draft {
  /** The arguments, as they were when the text could last be read. */
  value: JsonObject;
  /** The text of the JSON view while it cannot be read as an object. */
  broken?: string;
}

const EMPTY: Draft = { value: {} };
const PREFIX = 'switchboard-draft:';
const cache = new Map<string, Draft>();
const listeners = new Set<() => void>();

export function readDraft(tool: string): Draft {
  const known = cache.get(tool);
  if (known !== undefined) return known;
  let draft = EMPTY;
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(PREFIX + tool) ?? 'null');
    if (typeof stored === 'object' && stored !== null && 'value' in stored) draft = stored as Draft;
  } catch {
    // What cannot be read is no draft.
  }
  cache.set(tool, draft);
  return draft;
}

export function writeDraft(tool: string, draft: Draft): void {
  cache.set(tool, draft);
  try {
    sessionStorage.setItem(PREFIX + tool, JSON.stringify(draft));
  } catch {
    // The storage is full: the draft lives in memory.
  }
  for (const listener of listeners) listener();
}

/** The draft that the text of the JSON view makes: broken text keeps the arguments of before. */
export function draftOfText(before: Draft, text: string): Draft {
  if (text.trim() === '') return { value: {} };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value: value as JsonObject };
  } catch {
    // Kept below.
  }
  return { value: before.value, broken: text };
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useDraft(tool: string): [Draft, (draft: Draft) => void] {
  const draft = useSyncExternalStore(subscribe, () => readDraft(tool));
  const set = useCallback((next: Draft) => writeDraft(tool, next), [tool]);
  return [draft, set];
}
