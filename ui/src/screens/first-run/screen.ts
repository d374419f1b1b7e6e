import { IconRocket } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: '',
  label: 'Start',
  icon: IconRocket,
  about: 'Three steps to a first tool call',
  routes: [{ index: true, lazy: async () => ({ Component: (await import('./FirstRunScreen')).FirstRunScreen }) }],
};
