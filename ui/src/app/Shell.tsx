import { ActionIcon, AppShell, Box, Burger, Button, Group, Kbd, NavLink, ScrollArea, Text } from '@mantine/core';
import { useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { IconLogout, IconMoon, IconSearch, IconSun } from '@tabler/icons-react';
import { lazy, Suspense, useEffect, useState } from 'react';
import { NavLink as RouterLink, Outlet, useLocation, useNavigation } from 'react-router';
import { Loading } from '../components/states';
import { useMe } from '../data/me';
import { signOut } from '../data/query-client';
import { LiveIndicator } from './LiveIndicator';
import { screens } from './screens';

const Palette = lazy(() => import('./Palette'));

function SchemeSwitch() {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light', { getInitialValueInEffect: false });
  const other = scheme === 'dark' ? 'light' : 'dark';
  return (
    <ActionIcon
      title={`Switch to ${other} mode`}
      variant="default"
      size="lg"
      aria-label={`Switch to ${other} mode`}
      onClick={() => setColorScheme(other)}
    >
      {scheme === 'dark' ? <IconSun size={18} /> : <IconMoon size={18} />}
    </ActionIcon>
  );
}

function Navigation({ onChosen }: { onChosen: () => void }) {
  const { data: me } = useMe();
  const rank = { client: 0, operator: 1, admin: 2 };
  const may = (role?: 'operator' | 'admin') => role === undefined || me === undefined || rank[me.role] >= rank[role];
  return (
    <>
      <AppShell.Section grow component={ScrollArea}>
        {screens
          .filter(({ role }) => may(role))
          .map(({ path, label, icon: Icon }) => (
            <NavLink
              key={path}
              component={RouterLink}
              to={`/${path}`}
              end={path === ''}
              label={label}
              leftSection={<Icon size={18} stroke={1.6} />}
              onClick={onChosen}
            />
          ))}
      </AppShell.Section>
      <AppShell.Section>
        <NavLink component="a" href="/api/v1/docs" label="API" description="The same for scripts" />
        <Group justify="space-between" px="sm" py="xs" gap="xs" wrap="nowrap">
          <Text size="xs" c="dimmed" truncate>
            {me?.version ? `Switchboard ${me.version}` : 'Switchboard'}
            {me && me.access !== 'open' ? ` · ${me.name ?? me.principal} (${me.role})` : ''}
          </Text>
          {me && me.access !== 'open' && (
            <ActionIcon title="Sign out" variant="subtle" color="gray" aria-label="Sign out" onClick={signOut}>
              <IconLogout size={16} />
            </ActionIcon>
          )}
        </Group>
      </AppShell.Section>
    </>
  );
}

/** The frame around every screen. */
export function Shell() {
  const [opened, { toggle, close }] = useDisclosure(false);
  const [palette, setPalette] = useState(false);
  const { pathname } = useLocation();
  const navigation = useNavigation();
  useHotkeys([['mod+K', () => setPalette(true)]], [], true);
  useEffect(() => {
    document.getElementById('main')?.focus({ preventScroll: true });
  }, [pathname]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding={{ base: 'sm', sm: 'md' }}
    >
      <AppShell.Header>
        <a href="#main" className="skip">
          Skip to the content
        </a>
        <Group h="100%" px="sm" gap="xs" justify="space-between" wrap="nowrap">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={opened ? 'Close the navigation' : 'Open the navigation'}
              aria-expanded={opened}
            />
            <Text fw={700} visibleFrom="xs">
              Switchboard
            </Text>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <LiveIndicator />
            <Button
              variant="default"
              leftSection={<IconSearch size={16} />}
              rightSection={<Kbd size="xs">Ctrl K</Kbd>}
              onClick={() => setPalette(true)}
              visibleFrom="xs"
            >
              Find
            </Button>
            <ActionIcon variant="default" size="lg" aria-label="Find" onClick={() => setPalette(true)} hiddenFrom="xs">
              <IconSearch size={18} />
            </ActionIcon>
            <SchemeSwitch />
          </Group>
        </Group>
        <Box className="progress" data-active={navigation.state !== 'idle' || undefined} />
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Screens">
        <Navigation onChosen={close} />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </AppShell.Main>
      {palette && (
        <Suspense fallback={null}>
          <Palette onClose={() => setPalette(false)} />
        </Suspense>
      )}
    </AppShell>
  );
}
