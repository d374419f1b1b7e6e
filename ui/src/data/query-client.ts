import { QueryCache, QueryClient } from '@tanstack/react-query';
import { setApiKey } from '../api/key';
import { ApiError } from '../api/problem';
import { eventStream } from './event-stream';

/** How often data is fetched again from a board that has no event stream. */
const POLL_EVERY = 3_000;

/** Query keys begin with the name of the thing: `['servers']`, `['tool', name]`. Events invalidate by that name. */
export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      // A key that was revoked leads back to the sign-in screen.
      if (error instanceof ApiError && error.status === 401 && queryKey[0] !== 'me')
        void queryClient.invalidateQueries({ queryKey: ['me'] });
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      refetchInterval: () => (eventStream.state().status === 'polling' ? POLL_EVERY : false),
      retry: (count, error) => error instanceof ApiError && error.status === 0 && count < 1,
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});

/** Forgets the key and everything that was read with it. */
export function signOut(): void {
  setApiKey(null);
  void queryClient.resetQueries();
  eventStream.restart();
}
