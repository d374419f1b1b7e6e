import { IconKey } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'keys',
  label: 'Keys',
  icon: IconKey,
  about: 'API keys of clients',
  role: 'admin',
  routes: [{ index: true, lazy: async () => ({ Component: (await import('./KeysScreen')).KeysScreen }) }],
};
