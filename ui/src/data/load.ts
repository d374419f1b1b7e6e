/** What runs and waits at this moment. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { client, unwrap } from '../api/client';
import type { components } from '../api/schema';

export type Slot = components['schemas']['SlotView'];

export const loadQuery = queryOptions({
  queryKey: ['stats-now'],
  queryFn: ({ signal }) => unwrap(client.GET('/api/v1/stats/now', { signal })),
});

export const useLoad = () => useQuery(loadQuery);

/** The calls of one tool that run and wait; `undefined` while there are none. */
export const useSlot = (tool: string): Slot | undefined =>
  useQuery({ ...loadQuery, select: ({ slots }) => slots.find((slot) => slot.tool === tool) }).data;
