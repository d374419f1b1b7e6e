/**
 * The API key of this tab. It is kept in `sessionStorage`: it survives a reload, ends with the tab, and is never part of an
 * address.
 */
const NAME = 'switchboard-key';
const listeners = new Set<() => void>();

export function apiKey(): string | null {
  return sessionStorage.getItem(NAME);
}

export function setApiKey(key: string | null): void {
  if (key === null) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, key);
  for (const listener of listeners) listener();
}

export function onApiKeyChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The header that carries the key, if there is one. */
export function authorization(): Record<string, string> {
  const key = apiKey();
  return key === null ? {} : { authorization: `Bearer ${key}` };
}
