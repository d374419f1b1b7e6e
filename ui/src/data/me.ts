import { useQuery } from '@tanstack/react-query';
import { boardFetch, requestJson } from '../api/client';
import { ApiError } from '../api/problem';

export interface Me {
  principal: string;
  /** The name of the key. */
  name?: string | null;
  role: 'client' | 'operator' | 'admin';
  access: 'open' | 'key' | 'token';
  version: string;
  exposure?: string;
}

/** Who the board takes this tab for. A board that cannot say it is asked for its tools: only a 401 matters then. */
async function fetchMe(): Promise<Me> {
  try {
    return await requestJson<Me>('/api/v1/me');
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  const response = await boardFetch('/api/v1/servers', { method: 'GET' });
  if (response.status === 401) await requestJson('/api/v1/servers');
  return { principal: 'local', role: 'admin', access: 'open', version: '' };
}

export function useMe() {
  return useQuery({ queryKey: ['me'], queryFn: fetchMe, staleTime: 60_000 });
}

const RANK = { client: 0, operator: 1, admin: 2 };

/** Whether this tab may do what needs the role. While it is not known yet, nothing is hidden. */
export function useRole(needed: Me['role']): boolean {
  const { data } = useMe();
  return data === undefined || RANK[data.role] >= RANK[needed];
}
