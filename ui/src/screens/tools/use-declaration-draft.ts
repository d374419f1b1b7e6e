import { useEffect, useState } from 'react';
import type { ToolDeclaration, ToolDeclarationView } from '../../api/types';
import { keepForm, keptForm } from '../../components/form-draft';
import { type ArgumentRow, declarationOf, keptRow, restoredRow, rowOf } from './argument-rows';

/** The edits of an entry, with the version of the entry that they began with. */
interface DeclarationEdits {
  etag: string | null;
  base: ToolDeclaration | null;
  rows: ArgumentRow[];
  description: string;
  /** The names of the arguments whose fixed value was typed before a reload and is not kept. */
  forgotten: string[];
}

const isEdits = (value: unknown): value is DeclarationEdits =>
  typeof value === 'object' && value !== null && 'rows' in value && 'base' in value && Array.isArray(value.rows);

export const formName = (tool: string): string => `arguments:${tool}`;

function fresh({ etag, declared }: ToolDeclarationView): DeclarationEdits {
  const rows = (declared?.arguments ?? []).map(rowOf);
  return { etag, base: declared, rows, description: declared?.description ?? '', forgotten: [] };
}

function restored(tool: string): DeclarationEdits | undefined {
  const kept = keptForm(formName(tool), isEdits);
  if (kept === undefined) return undefined;
  const forgotten = kept.rows.filter((row) => 'isForgotten' in row).map(({ name }) => name);
  return { ...kept, rows: kept.rows.map(restoredRow), forgotten };
}

/**
 * The edits of the entry of a tool. They survive a reload and a restart of the board. They keep the version that they began
 * with, so that a save after somebody else's change is refused and not lost.
 */
export function useDeclarationDraft(view: ToolDeclarationView) {
  const [edits, setEdits] = useState(() => restored(view.name) ?? fresh(view));
  const { base, rows, description } = edits;
  const declaration = declarationOf(base, rows, description);
  const unedited = declarationOf(base, (base?.arguments ?? []).map(rowOf), base?.description ?? '');
  const isChanged = JSON.stringify(declaration) !== JSON.stringify(unedited);
  useEffect(() => {
    const { etag, base, description } = edits;
    keepForm(formName(view.name), isChanged ? { etag, base, description, rows: edits.rows.map(keptRow) } : undefined);
  }, [edits, isChanged, view.name]);
  return {
    ...edits,
    declaration,
    isChanged,
    setRows: (next: ArgumentRow[]) => setEdits((old) => ({ ...old, rows: next })),
    setDescription: (next: string) => setEdits((old) => ({ ...old, description: next })),
    setEtag: (next: string | null) => setEdits((old) => ({ ...old, etag: next })),
    take: (next: ToolDeclarationView) => setEdits(fresh(next)),
    discard: () => setEdits((old) => fresh({ ...view, etag: old.etag, declared: old.base })),
    forget: () => keepForm(formName(view.name), undefined),
  };
}
