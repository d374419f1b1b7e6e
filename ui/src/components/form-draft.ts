/**
 * Forms that are not saved yet. What was typed survives a reload, another screen and a restart of the board, and ends with
 * the tab. Secrets are left out by the form that keeps them: storage is no place for them.
 */
const PREFIX = 'switchboard-form:';

/** What was kept of the form; `undefined` without unsaved edits. `isShape` refuses what another version has written. */
export function keptForm<T>(name: string, isShape: (value: unknown) => value is T): T | undefined {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(PREFIX + name) ?? 'null');
    return isShape(stored) ? stored : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the edits of a form; `undefined` forgets them. */
export function keepForm(name: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // The storage is full: the edits live as long as the screen.
  }
}

export const hasKeptForm = (name: string): boolean => sessionStorage.getItem(PREFIX + name) !== null;

/** An address without user, password and parameters, which may be credentials. Text that is no address is kept. */
export function withoutCredentials(text: string): string {
  try {
    const url = new URL(text);
    if (url.username === '' && url.password === '' && url.search === '') return text;
    return `${url.protocol}//${url.host}${url.pathname}`;
  } catch {
    return text;
  }
}
