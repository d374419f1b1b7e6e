import { Container } from '@mantine/core';
import { lazy, Suspense, useDeferredValue, useEffect } from 'react';
import { ApiError } from '../api/problem';
import { ErrorPanel, Loading } from '../components/states';
import { startLive } from '../data/live';
import { useMe } from '../data/me';
import { Shell } from './Shell';

const SignIn = lazy(() => import('./SignIn'));

/** Lets nobody past who the board does not know, and starts the event stream for the others. */
export function Gate() {
  const me = useMe();
  const isIn = me.data !== undefined;
  // A whole screen is drawn for the first time: in pieces, with room for other work between them.
  const isShown = useDeferredValue(isIn, false);
  useEffect(() => (isIn ? startLive() : undefined), [isIn]);
  if (me.error instanceof ApiError && me.error.status === 401) {
    return (
      <Suspense fallback={null}>
        <SignIn reason={me.error.message} />
      </Suspense>
    );
  }
  if (isShown) return <Shell />;
  return (
    <Container size="sm" py="xl" component="main">
      {me.isError ? <ErrorPanel error={me.error} onRetry={() => void me.refetch()} /> : <Loading />}
    </Container>
  );
}
