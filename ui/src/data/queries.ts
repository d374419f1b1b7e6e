/** Queries that more than one screen uses. Those of one screen are in its folder. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { client, unwrap } from '../api/client';

export const serversQuery = queryOptions({
  queryKey: ['servers'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/servers', { signal })),
});

export const toolsQuery = queryOptions({
  queryKey: ['tools'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/tools', { signal })),
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

export const useServers = () => useQuery(serversQuery);
export const useTools = () => useQuery(toolsQuery);
export const useToolsets = () => useQuery(toolsetsQuery);
export const useSessions = () => useQuery(sessionsQuery);
export const useProviders = () => useQuery(providersQuery);
