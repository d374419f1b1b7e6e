import '@mantine/core/styles.css';
import './app/style.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { setNonce } from 'get-nonce';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { RouterProvider } from 'react-router';
import { nonce } from './components/nonce';
import { makeRouter } from './app/router';
import { cssVariables, theme } from './app/theme';
import { queryClient } from './data/query-client';

if (nonce !== undefined) setNonce(nonce);

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce ?? ''}
    >
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={makeRouter()} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
