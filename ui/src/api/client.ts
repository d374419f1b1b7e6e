/** Requests to the board that served this page. Types come from its OpenAPI document; the key is added here and nowhere else. */
import createClient from 'openapi-fetch';
import { authorization } from './key';
import { problemOf, unreachable } from './problem';
import type { paths } from './schema';

/** `fetch` with the key of this tab. Only paths of the board's own origin are taken. */
export async function boardFetch(input: string | Request, init?: RequestInit): Promise<Response> {
  const request = input instanceof Request ? input : new Request(new URL(input, window.location.origin), init);
  if (new URL(request.url).origin !== window.location.origin) throw new Error('only the board itself is asked');
  for (const [name, value] of Object.entries(authorization())) request.headers.set(name, value);
  try {
    return await globalThis.fetch(request, { cache: 'no-cache' });
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    throw unreachable(cause);
  }
}

export const client = createClient<paths>({
  baseUrl: window.location.origin,
  fetch: (request: Request) => boardFetch(request),
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of a response; throws an `ApiError` for every other answer. */
export async function unwrap<T>(pending: Promise<Answer<T>>): Promise<NonNullable<T>> {
  const { data, error, response } = await pending;
  if (!response.ok) throw problemOf(response.status, error);
  return data as NonNullable<T>;
}

/** A JSON request to a path that is built by hand. */
export async function requestJson<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await boardFetch(path, init);
  const text = await response.text();
  let body: unknown = text;
  try {
    body = text === '' ? undefined : JSON.parse(text);
  } catch {
    // Not JSON: the text itself is shown.
  }
  if (!response.ok) throw problemOf(response.status, body);
  return body as T;
}
