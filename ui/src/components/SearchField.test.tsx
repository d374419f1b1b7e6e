import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { expect, test, vi } from 'vitest';
import { show } from '../test/render';
import { SearchField } from './SearchField';

/** An address that changes late, as that of a browser does. */
function Late({ heard }: { heard: (text: string) => void }) {
  const [value, setValue] = useState('');
  return (
    <>
      <button onClick={() => setValue('before')}>Back</button>
      <SearchField
        aria-label="Search"
        value={value}
        onChange={(text) => {
          heard(text);
          setTimeout(() => setValue(text), 80);
        }}
      />
    </>
  );
}

test('every letter stays, the end is passed on, and a step back is taken over', async () => {
  const heard = vi.fn();
  show(<Late heard={heard} />);
  const field = screen.getByRole('textbox', { name: 'Search' });
  await userEvent.setup({ delay: 40 }).type(field, 'tool_499 and more');
  expect(field).toHaveValue('tool_499 and more');
  await vi.waitFor(() => expect(heard).toHaveBeenLastCalledWith('tool_499 and more'));
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(field).toHaveValue('tool_499 and more');
  await userEvent.click(screen.getByRole('button', { name: 'Back' }));
  expect(field).toHaveValue('before');
});
