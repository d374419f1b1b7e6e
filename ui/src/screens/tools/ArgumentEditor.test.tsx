import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, expect, test } from 'vitest';
import { answer, show } from '../../test/render';
import ArgumentEditor from './ArgumentEditor';

const view = {
  name: 'demo.echo',
  declared: { arguments: [{ name: 'token', value: '***' }], limits: { timeout: '5s' } },
  server: { description: 'Echo', input_schema: { type: 'object', properties: { text: { type: 'string' } } } },
  merged: null,
  absent: null,
  origins: {},
  etag: 'v1',
  revision: 1,
};
const board = (put: () => unknown = () => ({ ...view, etag: 'v2' })) =>
  answer({
    'GET /api/v1/me': () => ({ principal: 'local', role: 'admin', access: 'open', version: '1' }),
    'GET /api/v1/tools/demo.echo/declaration': () => view,
    'POST /api/v1/tools/demo.echo/declaration/preview': () => ({ input_schema: {}, warnings: [], tokens: {} }),
    'PUT /api/v1/tools/demo.echo/declaration': put,
  });

beforeEach(() => sessionStorage.clear());

test('edits survive a reload, and a fixed value is neither kept nor shown', async () => {
  board();
  const first = show(<ArgumentEditor name="demo.echo" />);
  await userEvent.type(await screen.findByLabelText('Description of the tool'), 'Says it again');
  await userEvent.clear(screen.getByLabelText('Fixed value'));
  await userEvent.type(screen.getByLabelText('Fixed value'), 'sk-secret');
  const diff = screen.getByLabelText('What will be written');
  expect(diff).toHaveTextContent('added: description: Says it again');
  expect(diff).toHaveTextContent('*** (new)');
  expect(diff).not.toHaveTextContent('sk-secret');
  expect(JSON.stringify({ ...sessionStorage })).not.toContain('sk-secret');
  first.unmount();
  show(<ArgumentEditor name="demo.echo" />);
  expect(await screen.findByLabelText('Description of the tool')).toHaveValue('Says it again');
  expect(screen.getByText(/Type them again: token/)).toBeInTheDocument();
  expect(screen.getByText('Not saved yet')).toBeInTheDocument();
});

test('a save is for the version that the edits began with, and forgets them', async () => {
  const asked = board();
  show(<ArgumentEditor name="demo.echo" />);
  await userEvent.type(await screen.findByLabelText('Description of the tool'), 'x');
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await screen.findByText(/Saved/);
  const put = asked.find(({ method }) => method === 'PUT');
  expect(put?.headers.get('if-match')).toBe('"v1"');
  expect(await put?.json()).toEqual({ ...view.declared, description: 'x' });
  await waitFor(() => expect(Object.keys({ ...sessionStorage })).toEqual([]));
});
