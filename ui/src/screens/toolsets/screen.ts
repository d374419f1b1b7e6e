import { IconStack2 } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'toolsets',
  label: 'Toolsets',
  icon: IconStack2,
  about: 'Groups of tools and what they cost',
  routes: [{ index: true, lazy: async () => ({ Component: (await import('./ToolsetsScreen')).ToolsetsScreen }) }],
};
