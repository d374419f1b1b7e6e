import { queryOptions, useQuery } from '@tanstack/react-query';
import { requestJson } from '../../api/client';
import type { Delta, Rendering } from './renderings';

/** The formats that the board renders, and what they are for. */
export const FORMATS: Record<string, string> = {
  openai: 'OpenAI Responses',
  'openai-chat': 'Chat Completions',
  anthropic: 'Anthropic Messages',
  gemini: 'Gemini',
  'gemini-parameters': 'older Gemini backends',
  mcp: 'MCP clients',
  langchain: 'LangChain',
  'semantic-kernel': 'Semantic Kernel',
  react: 'models without tool calls',
};

const path = (session: string): string => `/api/v1/sessions/${encodeURIComponent(session)}`;

interface RenderingList {
  tools_revision: number;
  renderings: Rendering[];
}

/** Renderings that this tab has seen, to compare a later revision with. */
const seen = new Map<string, Map<string, unknown>>();
const MOST_SEEN = 60;

function remember(session: string, { provider, tools_revision, explained }: Rendering): void {
  if (!explained) return;
  if (seen.size >= MOST_SEEN) seen.delete(seen.keys().next().value as string);
  const tools = new Map(explained.map(({ name, declaration }) => [name, declaration]));
  seen.set(`${session}/${provider}/${tools_revision}`, tools);
}

/** The declaration of a tool at an earlier revision, if this tab has seen it. */
export function seenDeclaration(session: string, provider: string, revision: number, name: string): unknown {
  return seen.get(`${session}/${provider}/${revision}`)?.get(name);
}

async function fetchRenderings(session: string, providers: string[], signal: AbortSignal): Promise<RenderingList> {
  const query = new URLSearchParams({ providers: providers.join(',') });
  const list = await requestJson<RenderingList>(`${path(session)}/renderings?${query}`, { signal });
  for (const rendering of list.renderings) remember(session, rendering);
  return list;
}

export const renderingsQuery = (session: string, providers: string[]) =>
  queryOptions({
    queryKey: ['renderings', session, providers],
    queryFn: ({ signal }) => fetchRenderings(session, providers, signal),
  });

export const useRenderings = (session: string | undefined, providers: string[]) =>
  useQuery({
    ...renderingsQuery(session ?? '', providers),
    placeholderData: (before) => before,
    enabled: session !== undefined && providers.length > 0,
  });

/** What changed for each provider since a revision; `null` where the board no longer knows that revision. */
export const useDeltas = (session: string | undefined, providers: string[], since: number | undefined) =>
  useQuery({
    queryKey: ['renderings', session, providers, 'since', since],
    queryFn: async ({ signal }) => {
      const deltas = providers.map(async (provider): Promise<[string, Delta | null]> => {
        const query = new URLSearchParams({ provider, since: String(since) });
        const { delta } = await requestJson<Rendering>(`${path(session ?? '')}/render?${query}`, { signal });
        return [provider, delta ?? null];
      });
      return Object.fromEntries(await Promise.all(deltas));
    },
    enabled: session !== undefined && since !== undefined && providers.length > 0,
  });
