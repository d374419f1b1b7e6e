import { fireEvent, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { expect, test, vi } from 'vitest';
import { show } from '../../test/render';
import { Composer } from './Composer';

// happy-dom has no fonts; the field that grows listens for them.
Object.defineProperty(document, 'fonts', { value: new EventTarget() });

function Shown({ onSend, onStop }: { onSend: (text: string) => void; onStop?: () => void }) {
  const [text, setText] = useState('');
  return <Composer text={text} onText={setText} onSend={() => onSend(text)} onStop={onStop} />;
}

const field = () => screen.getByRole('textbox', { name: 'Message' });

test('Enter sends, Shift+Enter begins a line, and an empty message is not sent', async () => {
  const sent = vi.fn();
  show(<Shown onSend={sent} />);
  await userEvent.type(field(), '{Enter}  {Enter}');
  expect(sent).not.toHaveBeenCalled();
  await userEvent.clear(field());
  await userEvent.type(field(), 'one{Shift>}{Enter}{/Shift}two');
  expect(sent).not.toHaveBeenCalled();
  await userEvent.type(field(), '{Control>}{Enter}{/Control}');
  expect(sent).toHaveBeenCalledWith('one\ntwo');
});

test('Enter that ends a composed character does not send', async () => {
  const sent = vi.fn();
  show(<Shown onSend={sent} />);
  await userEvent.type(field(), 'text');
  fireEvent.keyDown(field(), { key: 'Enter', isComposing: true });
  expect(sent).not.toHaveBeenCalled();
});

test('while a turn runs it can be stopped and the next message written, but not sent', async () => {
  const [sent, stopped] = [vi.fn(), vi.fn()];
  show(<Shown onSend={sent} onStop={stopped} />);
  await userEvent.type(field(), 'next{Enter}');
  expect(sent).not.toHaveBeenCalled();
  expect(screen.queryByRole('button', { name: 'Send' })).toBeNull();
  await userEvent.click(screen.getByRole('button', { name: 'Stop' }));
  expect(stopped).toHaveBeenCalledOnce();
});
