import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, test } from 'vitest';
import { answer, show } from '../../test/render';
import { SessionSwitch } from './SessionSwitch';

const toolsets = (enabled: boolean, tools_revision = 4) => ({
  tools_revision,
  exposure: 'legacy',
  toolsets: [{ name: 'local', description: '', enabled, tools: 2 }],
});
const refusal = (status: number, title: string, detail: string) => () =>
  Response.json({ title, status, detail }, { status });

test('a switch is sent for the revision that was on the screen', async () => {
  const asked = answer({
    'GET /api/v1/sessions/s/toolsets': () => toolsets(true),
    'PATCH /api/v1/sessions/s': () => ({ id: 's', tools_revision: 5 }),
  });
  show(<SessionSwitch session="s" name="local" />);
  await userEvent.click(await screen.findByRole('switch', { name: 'local in the session' }));
  await waitFor(() => expect(asked.some(({ method }) => method === 'PATCH')).toBe(true));
  const sent = asked.find(({ method }) => method === 'PATCH');
  expect(await sent?.json()).toEqual({ toolsets: { local: false }, tools_revision: 4 });
});

test.each([
  [409, 'stale revision', /Somebody changed the session meanwhile/],
  [403, 'forbidden', /not yours/],
])('a refusal with %i goes back and says why', async (status, title, words) => {
  answer({
    'GET /api/v1/sessions/s/toolsets': () => toolsets(true),
    'PATCH /api/v1/sessions/s': refusal(status, title, 'not yours'),
  });
  show(<SessionSwitch session="s" name="local" />);
  await userEvent.click(await screen.findByRole('switch', { name: 'local in the session' }));
  expect(await screen.findByText(words)).toBeInTheDocument();
  expect(screen.getByRole('switch', { name: 'local in the session' })).toBeChecked();
});
