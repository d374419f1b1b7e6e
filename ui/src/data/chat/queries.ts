import { queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';
import { client, requestJson, unwrap } from '../../api/client';
import { ApiError } from '../../api/problem';
import type { components } from '../../api/schema';
import { useBoardEvents } from '../live';
import { queryClient } from '../query-client';
import { type ChatState, type LiveChat, liveChat } from './live-chat';

type Schemas = components['schemas'];
export type SessionChange = Schemas['SessionChange'];
export type SessionView = Schemas['SessionView'];
export type Message = Schemas['Message'];

export const sessionQuery = (id: string) =>
  queryOptions({
    queryKey: ['session', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/sessions/{id}', { params: { path: { id } }, signal })),
  });

export const historyQuery = (id: string) =>
  queryOptions({
    queryKey: ['history', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/sessions/{id}/history', { params: { path: { id } }, signal })),
  });

export const turnsQuery = (id: string) =>
  queryOptions({
    queryKey: ['turns', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/sessions/{id}/turns', { params: { path: { id } }, signal })),
  });

export const useSession = (id: string) => useQuery(sessionQuery(id));
export const useHistory = (id: string) => useQuery(historyQuery(id));

/** The turns of a session that this tab follows; those of the board are picked up. */
export function useLiveChat(id: string): { chat: LiveChat; state: ChatState } {
  const chat = liveChat(id);
  const state = useSyncExternalStore(chat.subscribe, chat.state);
  const { data } = useQuery(turnsQuery(id));
  const latest = data?.turns.at(-1)?.id;
  useEffect(() => {
    if (latest !== undefined) liveChat(id).follow(latest);
  }, [id, latest]);
  useBoardEvents(['turn'], ({ data: turn }) => {
    if (turn.session === id && turn.status === 'running') liveChat(id).follow(String(turn.id));
  });
  return { chat, state };
}

export async function changeSession(id: string, change: SessionChange, apply?: 'now'): Promise<SessionView> {
  const query = apply === undefined ? '' : `?apply=${apply}`;
  const view = await requestJson<SessionView>(`/api/v1/sessions/${encodeURIComponent(id)}${query}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(change),
  });
  queryClient.setQueryData(sessionQuery(id).queryKey, (old) => ({ ...old, ...view }));
  void queryClient.invalidateQueries({ predicate: ({ queryKey }) => STALE.has(String(queryKey[0])) });
  return view;
}

const STALE = new Set(['sessions', 'session', 'session-tools', 'session-toolsets', 'renderings']);

export async function createSession(body: Schemas['NewSession']): Promise<SessionView> {
  const view = await unwrap(client.POST('/api/v1/sessions', { body }));
  void queryClient.invalidateQueries({ queryKey: ['sessions'] });
  return view;
}

/** Makes a session with the same settings and an empty conversation. */
export async function copySession(id: string): Promise<SessionView> {
  const view = await unwrap(client.POST('/api/v1/sessions/{id}/clone', { params: { path: { id } }, body: {} }));
  void queryClient.invalidateQueries({ queryKey: ['sessions'] });
  return view;
}

export async function deleteSession(id: string): Promise<void> {
  const { response, error } = await client.DELETE('/api/v1/sessions/{id}', { params: { path: { id } } });
  if (!response.ok) throw new ApiError(response.status, error as Schemas['Problem']);
  void queryClient.invalidateQueries({ queryKey: ['sessions'] });
}
