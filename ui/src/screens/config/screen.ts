import { IconSettings } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'config',
  label: 'Configuration',
  icon: IconSettings,
  about: 'Every setting and where it comes from',
  role: 'operator',
  routes: [{ index: true, lazy: async () => ({ Component: (await import('./ConfigScreen')).ConfigScreen }) }],
};
