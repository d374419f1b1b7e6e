import { Anchor, Container } from '@mantine/core';
import { createBrowserRouter, isRouteErrorResponse, Link, type RouteObject, useRouteError } from 'react-router';
import { Page } from '../components/Page';
import { ErrorPanel, Loading } from '../components/states';
import { Gate } from './Gate';
import { screens } from './screens';

function NotFound() {
  return (
    <Page title="There is nothing at this address">
      <Anchor component={Link} to="/">
        Go to the start
      </Anchor>
    </Page>
  );
}

/** A screen that broke takes down neither the navigation nor the others. */
function Broken() {
  const error = useRouteError();
  if (isRouteErrorResponse(error) && error.status === 404) return <NotFound />;
  return (
    <Container size="sm" py="xl">
      <ErrorPanel error={error} onRetry={() => window.location.reload()} />
    </Container>
  );
}

export const routes: RouteObject[] = [
  {
    path: '/',
    Component: Gate,
    HydrateFallback: Loading,
    ErrorBoundary: Broken,
    children: [
      ...screens.map(({ path, routes }): RouteObject => ({ path, children: routes, ErrorBoundary: Broken })),
      { path: '*', Component: NotFound },
    ],
  },
];

export const makeRouter = () => createBrowserRouter(routes);
