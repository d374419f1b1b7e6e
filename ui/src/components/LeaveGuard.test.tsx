import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import { show } from '../test/render';
import { LeaveGuard } from './LeaveGuard';

function leave(when: boolean) {
  const onDiscard = vi.fn();
  const { router } = show(<LeaveGuard when={when} what="a form" onDiscard={onDiscard} />, {
    path: '/form',
    at: '/form',
  });
  return { router, onDiscard, go: (to: string) => router.navigate(to) };
}

test('nothing is asked without edits, or when only the parameters change', async () => {
  const clean = leave(false);
  await clean.go('/other');
  expect(clean.router.state.location.pathname).toBe('/other');
  const edited = leave(true);
  await edited.go('/form?tab=2');
  expect(edited.router.state.location.search).toBe('?tab=2');
  expect(screen.queryByRole('dialog')).toBeNull();
});

test.each([
  ['Stay', '/form', 0],
  ['Leave and keep them', '/other', 0],
  ['Discard them', '/other', 1],
])('%s', async (button, path, discarded) => {
  const { router, onDiscard, go } = leave(true);
  void go('/other');
  await userEvent.click(await screen.findByRole('button', { name: button }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(router.state.location.pathname).toBe(path);
  expect(onDiscard).toHaveBeenCalledTimes(discarded);
});

test('the browser asks before the tab is closed', () => {
  leave(true);
  const event = new Event('beforeunload', { cancelable: true });
  window.dispatchEvent(event);
  expect(event.defaultPrevented).toBe(true);
});
