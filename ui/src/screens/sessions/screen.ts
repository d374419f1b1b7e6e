import { IconUsers } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'sessions',
  label: 'Sessions',
  icon: IconUsers,
  about: 'Chats and connected MCP clients',
  routes: [
    { index: true, lazy: async () => ({ Component: (await import('./SessionsScreen')).SessionsScreen }) },
    { path: ':id', lazy: async () => ({ Component: (await import('./SessionPage')).SessionPage }) },
  ],
};
