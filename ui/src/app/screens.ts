/** All screens, in the order of the navigation. A new screen is one line here. */
import type { Screen } from '../components/screen';
import { screen as firstRun } from '../screens/first-run/screen';
import { screen as servers } from '../screens/servers/screen';
import { screen as tools } from '../screens/tools/screen';
import { screen as toolsets } from '../screens/toolsets/screen';
import { screen as sessions } from '../screens/sessions/screen';
import { screen as chat } from '../screens/chat/screen';
import { screen as renderings } from '../screens/renderings/screen';
import { screen as calls } from '../screens/calls/screen';
import { screen as config } from '../screens/config/screen';
import { screen as keys } from '../screens/keys/screen';

export const screens: Screen[] = [firstRun, servers, tools, toolsets, sessions, chat, renderings, calls, config, keys];
