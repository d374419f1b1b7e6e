import { IconActivity } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'calls',
  label: 'Calls',
  icon: IconActivity,
  about: 'The call log, error rates and queues',
  routes: [
    { index: true, lazy: async () => ({ Component: (await import('./CallsScreen')).CallsScreen }) },
    { path: ':id', lazy: async () => ({ Component: (await import('./CallPage')).CallPage }) },
  ],
};
