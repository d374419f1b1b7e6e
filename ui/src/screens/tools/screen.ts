import { IconTool } from '@tabler/icons-react';
import type { Screen } from '../../components/screen';

export const screen: Screen = {
  path: 'tools',
  label: 'Tools',
  icon: IconTool,
  about: 'All tools: search, try, declare',
  routes: [
    { index: true, lazy: async () => ({ Component: (await import('./ToolsScreen')).ToolsScreen }) },
    { path: ':name', lazy: async () => ({ Component: (await import('./ToolPage')).ToolPage }) },
  ],
};
