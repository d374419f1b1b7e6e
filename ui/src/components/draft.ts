/** Text that is not sent yet. It survives a reload, and ends with the tab. */
import { useCallback, useEffect, useState } from 'react';

const PREFIX = 'switchboard-draft:';

export function readDraft(name: string): string {
  return sessionStorage.getItem(PREFIX + name) ?? '';
}

export function writeDraft(name: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, text);
  } catch {
    // The storage is full: the text stays on the screen.
  }
}

export function useDraft(name: string): [string, (text: string) => void] {
  const [draft, setDraft] = useState({ name, text: readDraft(name) });
  const text = draft.name === name ? draft.text : readDraft(name);
  useEffect(() => {
    writeDraft(name, text);
  }, [name, text]);
  const set = useCallback((next: string) => setDraft({ name, text: next }), [name]);
  return [text, set];
}
