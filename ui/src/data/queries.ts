/** Queries that more than one screen uses. Those of one screen are in its folder. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { client, unwrap } from '../api/client';

export const serversQuery = queryOptions({
  queryKey: ['servers'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/servers', { signal })),
});

/** The list of thousands of tools is new at each revision: comparing it with the old one costs more than drawing it. */
export const toolsQuery = queryOptions({
  queryKey: ['tools'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/tools', { signal })),
  structuralSharing: false,
});

/** All tools, also those that are hidden. */
export const allToolsQuery = queryOptions({
  queryKey: ['tools', 'all'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/tools', { params: { query: { all: true } }, signal })),
  structuralSharing: false,
});

export const toolsetsQuery = queryOptions({
  queryKey: ['toolsets'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/toolsets', { signal })),
});

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/sessions', { signal })),
});

export const providersQuery = queryOptions({
  queryKey: ['providers'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/providers', { signal })),
  staleTime: 60_000,
});

/** The models that a provider offers. It is asked, and may refuse. */
export const modelsQuery = (provider: string) =>
  queryOptions({
    queryKey: ['models', provider],
    queryFn: ({ signal }) =>
      unwrap(client.GET('/api/v1/providers/{provider}/models', { params: { path: { provider } }, signal })),
    staleTime: 300_000,
    retry: false,
  });

export const useServers = () => useQuery(serversQuery);
export const useTools = () => useQuery(toolsQuery);
export const useToolsets = () => useQuery(toolsetsQuery);
export const useSessions = () => useQuery(sessionsQuery);
export const useProviders = () => useQuery(providersQuery);
