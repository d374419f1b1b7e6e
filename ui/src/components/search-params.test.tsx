import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, test } from 'vitest';
import { show } from '../test/render';
import { useSearch } from './search-params';

function Filters() {
  const [search, setSearch] = useSearch();
  const set = (name: string, value: string) =>
    setSearch((before) => {
      before.set(name, value);
      return before;
    });
  return (
    <>
      <button
        onClick={() => {
          set('server', 'demo');
          set('q', 'echo');
        }}
      >
        Both
      </button>
      <button onClick={() => set('state', 'hidden')}>One more</button>
      <button onClick={() => setSearch({})}>None</button>
      <p>{search.toString()}</p>
    </>
  );
}

test('changes of one moment do not undo each other', async () => {
  const { router } = show(<Filters />);
  await userEvent.click(screen.getByText('Both'));
  expect(await screen.findByText('server=demo&q=echo')).toBeVisible();
  await userEvent.click(screen.getByText('One more'));
  expect(await screen.findByText('server=demo&q=echo&state=hidden')).toBeVisible();
  await router.navigate(-1);
  await userEvent.click(screen.getByText('One more'));
  expect(await screen.findByText('server=demo&q=echo&state=hidden')).toBeVisible();
  await userEvent.click(screen.getByText('None'));
  expect(router.state.location.search).toBe('');
});
