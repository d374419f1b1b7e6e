import { IconServer } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'servers',
  label: 'Servers',
  icon: IconServer,
  about: 'Health of the MCP servers',
  routes: [
    { index: true, lazy: async () => ({ Component: (await import('./ServersScreen')).ServersScreen }) },
    { path: ':name', lazy: async () => ({ Component: (await import('./ServerPage')).ServerPage }) },
  ],
};
