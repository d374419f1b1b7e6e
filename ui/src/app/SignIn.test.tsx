import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, test } from 'vitest';
import { answer, show } from '../test/render';
import SignIn from './SignIn';

const refusal = () =>
  Response.json({ title: 'Unauthorized', status: 401, detail: 'the key is not known here' }, { status: 401 });

test('a key that the board takes is kept for this tab only', async () => {
  const asked = answer({ 'GET /api/v1/servers': () => ({ servers: [] }) });
  show(<SignIn />);
  await userEvent.type(screen.getByLabelText(/API key/), 'sb_good');
  await userEvent.click(screen.getByRole('button', { name: 'Sign in' }));
  expect(sessionStorage.getItem('switchboard-key')).toBe('sb_good');
  expect(localStorage.length).toBe(0);
  expect(asked[0].headers.get('authorization')).toBe('Bearer sb_good');
});

test('a key that it refuses is forgotten, with the reason', async () => {
  answer({ 'GET /api/v1/servers': refusal });
  show(<SignIn />);
  await userEvent.type(screen.getByLabelText(/API key/), 'sb_bad');
  await userEvent.click(screen.getByRole('button', { name: 'Sign in' }));
  expect(await screen.findByRole('alert')).toHaveTextContent('the key is not known here');
  expect(sessionStorage.getItem('switchboard-key')).toBeNull();
});
