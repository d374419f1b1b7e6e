/** Renders a part of the page as the program does, at an address, with answers of a board that the test writes down. */
import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render } from '@testing-library/react';
import type { ReactElement } from 'react';
import { createMemoryRouter, RouterProvider } from 'react-router';
import { vi } from 'vitest';
import { cssVariables, theme } from '../app/theme';

export type Answers = Record<string, (request: Request) => Response | Promise<Response> | unknown>;

/** Answers requests by `METHOD /path`; a plain value is sent as JSON. Returns the requests that were made. */
export function answer(answers: Answers): Request[] {
  const asked: Request[] = [];
  vi.stubGlobal('fetch', async (input: Request) => {
    asked.push(input.clone());
    const { pathname } = new URL(input.url);
    const handler = answers[`${input.method} ${pathname}`];
    if (handler === undefined)
      return Response.json({ title: 'Not found', status: 404, detail: `no ${pathname}` }, { status: 404 });
    const made = await handler(input);
    return made instanceof Response ? made : Response.json(made);
  });
  return asked;
}

export function show(element: ReactElement, { path = '/', at = '/' }: { path?: string; at?: string } = {}) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const router = createMemoryRouter(
    [
      { path, element },
      { path: '*', element: <p>elsewhere</p> },
    ],
    { initialEntries: [at] },
  );
  const shown = render(
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} env="test">
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return { ...shown, router, queries };
}
