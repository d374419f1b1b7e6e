import { IconEye } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'renderings',
  label: 'Renderings',
  icon: IconEye,
  about: 'What each provider is sent',
  routes: [{ index: true, lazy: async () => ({ Component: (await import('./RenderingsScreen')).RenderingsScreen }) }],
};
