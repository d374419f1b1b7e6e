/** What a session sees: its tools and toolsets, what changed them, and what a change would do. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { boardFetch, client, requestJson, unwrap } from '../../api/client';
import { problemOf } from '../../api/problem';
import type { components } from '../../api/schema';
import { turnsQuery } from '../chat/queries';
import { eventsOf } from '../sse';
import type { SessionDraft } from './draft';

type Schemas = components['schemas'];
export type SessionTool = Schemas['SessionTool'];

const path = (id: string): string => `/api/v1/sessions/${encodeURIComponent(id)}`;

export const sessionToolsQuery = (id: string) =>
  queryOptions({
    queryKey: ['session-tools', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/sessions/{id}/tools', { params: { path: { id } }, signal })),
    structuralSharing: false,
  });

/** Every tool that the session could have, with what decided its state where the board says it. */
export const allSessionToolsQuery = (id: string) =>
  queryOptions({
    queryKey: ['session-tools', id, 'all'],
    queryFn: ({ signal }) =>
      unwrap(client.GET('/api/v1/sessions/{id}/tools', { params: { path: { id }, query: { all: true } }, signal })),
    structuralSharing: false,
  });

export const sessionToolsetsQuery = (id: string) =>
  queryOptions({
    queryKey: ['session-toolsets', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/sessions/{id}/toolsets', { params: { path: { id } }, signal })),
  });

export const useAllSessionTools = (id: string) => useQuery(allSessionToolsQuery(id));
export const useSessionToolsets = (id: string) => useQuery(sessionToolsetsQuery(id));

/** The turn that runs in a session, and the revision of the tools that it has. */
export function useRunningTurn(id: string): { id: string; toolsRevision?: number } | undefined {
  const { data } = useQuery(turnsQuery(id));
  const turn = data?.turns.find(({ status }) => status === 'running');
  if (turn === undefined) return undefined;
  const revision =
    'tools_revision' in turn && typeof turn.tools_revision === 'number' ? turn.tools_revision : undefined;
  return { id: turn.id, toolsRevision: revision };
}

/** A step of the revision: what it added, took away and defined anew. */
export interface Step {
  tools_revision: number;
  cause: string;
  added: string[];
  removed: string[];
  changed: string[];
  at_ms: number;
}

/** How many steps are asked for at most. The board remembers 64. */
const STEPS = 20;

/** The steps since a revision, the newest first; `undefined` where the board no longer has them. */
export async function stepsSince(id: string, revision: number): Promise<Step[] | undefined> {
  const response = await boardFetch(`${path(id)}/events?follow=false`, {
    headers: { 'last-event-id': String(revision), accept: 'text/event-stream' },
  });
  if (!response.ok || response.body === null) throw problemOf(response.status, undefined);
  const steps: Step[] = [];
  for await (const events of eventsOf(response.body)) {
    for (const { event, data } of events) {
      if (event === 'reset') return undefined;
      if (event === 'revision') steps.push(JSON.parse(data) as Step);
    }
  }
  return steps.reverse();
}

export const useSteps = (id: string, revision: number | undefined) =>
  useQuery({
    queryKey: ['session-steps', id, revision],
    queryFn: async () => (await stepsSince(id, Math.max(1, (revision ?? 1) - STEPS))) ?? [],
    enabled: revision !== undefined && revision > 1,
  });

export type ChangePreview = Schemas['SessionPreview'];

/** What a change would do to the tools of a session and to their cost, without making it. */
export const usePreview = (id: string, draft: SessionDraft, isEmpty: boolean, revision: number | undefined) =>
  useQuery({
    queryKey: ['session-preview', id, draft, revision],
    queryFn: ({ signal }) =>
      unwrap(client.POST('/api/v1/sessions/{id}/preview', { params: { path: { id } }, body: draft, signal })),
    enabled: !isEmpty,
    placeholderData: (before) => before,
  });

export async function attachServer(id: string, name: string, url: string): Promise<void> {
  await requestJson(`${path(id)}/servers/${encodeURIComponent(name)}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  });
}

export async function detachServer(id: string, name: string): Promise<void> {
  await requestJson(`${path(id)}/servers/${encodeURIComponent(name)}`, { method: 'DELETE' });
}
