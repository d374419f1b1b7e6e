/** The entry of a toolset in the configuration file: read, written and removed. */
import { useQuery } from '@tanstack/react-query';
import { client, requestJson, unwrap } from '../../api/client';
import { queryClient } from '../query-client';
import type { ToolsetRules } from './compose';

export interface ToolsetEntry {
  description?: string;
  when_to_use?: string;
  tools?: string[];
  servers?: string[];
}

export interface ToolsetDetail {
  name: string;
  members: string[];
  /** The entry of the file; `null` where a server alone makes the toolset, or the caller may not see it. */
  declared?: ToolsetEntry | null;
  etag?: string | null;
}

const path = (name: string): string => `/api/v1/toolsets/${encodeURIComponent(name)}`;

export const useToolset = (name: string, isWanted = true) =>
  useQuery({
    queryKey: ['toolsets', name],
    queryFn: ({ signal }) => requestJson<ToolsetDetail>(path(name), { signal }),
    enabled: isWanted,
  });

/** The members of a toolset of these rules and their cost, without writing it. */
export const useToolsetPreview = (rules: ToolsetRules) =>
  useQuery({
    queryKey: ['toolsets', 'preview', rules],
    queryFn: ({ signal }) => unwrap(client.POST('/api/v1/toolset-previews', { body: rules, signal })),
    enabled: rules.tools.length + rules.servers.length > 0,
    placeholderData: (before) => before,
    retry: false,
  });

const changed = () => queryClient.invalidateQueries({ queryKey: ['toolsets'] });

/** Writes the entry. Without `etag` there must be none yet. */
export async function putToolset(name: string, entry: ToolsetEntry, etag: string | undefined): Promise<void> {
  await requestJson(path(name), {
    method: 'PUT',
    headers: {
      'content-type': 'application/json',
      ...(etag === undefined ? { 'if-none-match': '*' } : { 'if-match': `"${etag}"` }),
    },
    body: JSON.stringify(entry),
  });
  await changed();
}

export async function deleteToolset(name: string, etag: string): Promise<void> {
  await requestJson(path(name), { method: 'DELETE', headers: { 'if-match': `"${etag}"` } });
  await changed();
}
