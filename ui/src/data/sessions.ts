/** What a session sees: its tools and toolsets. */
import { queryOptions } from '@tanstack/react-query';
import { client, unwrap } from '../api/client';

export const sessionToolsQuery = (id: string) =>
  queryOptions({
    queryKey: ['session-tools', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/sessions/{id}/tools', { params: { path: { id } }, signal })),
  });

export const sessionToolsetsQuery = (id: string) =>
  queryOptions({
    queryKey: ['session-toolsets', id],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/sessions/{id}/toolsets', { params: { path: { id } }, signal })),
  });
