import { IconMessage } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'chat',
  label: 'Chat',
  icon: IconMessage,
  about: 'Talk to a model that has the tools',
  routes: [
    { index: true, lazy: async () => ({ Component: (await import('./ChatScreen')).ChatScreen }) },
    { path: ':id', lazy: async () => ({ Component: (await import('./ChatScreen')).ChatScreen }) },
  ],
};
