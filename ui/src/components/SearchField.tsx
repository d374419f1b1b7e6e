import { TextInput, type TextInputProps } from '@mantine/core';
import { useEffect, useEffectEvent, useState } from 'react';

const PAUSE = 120;

interface SearchFieldProps extends Omit<TextInputProps, 'value' | 'onChange'> {
  value: string;
  onChange: (text: string) => void;
}

/**
 * A field whose text ends up in the address. It keeps what is typed itself and passes it on after a short pause: an address
 * changes too late for a field that shows it, and letters would be lost.
 */
export function SearchField({ value, onChange, ...props }: SearchFieldProps) {
  const [state, setState] = useState({ text: value, outer: value, sent: value });
  if (state.outer !== value) {
    // A change from elsewhere, such as a step back, is taken over; our own is not.
    setState({ text: value === state.sent ? state.text : value, outer: value, sent: value });
  }
  const { text, sent } = state;
  const pass = useEffectEvent(onChange);
  useEffect(() => {
    if (text === sent) return;
    const timer = setTimeout(() => {
      setState((old) => ({ ...old, sent: text }));
      pass(text);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [text, sent]);
  return (
    <TextInput
      {...props}
      value={text}
      onChange={(event) => {
        const next = event.currentTarget.value;
        setState((old) => ({ ...old, text: next }));
      }}
    />
  );
}
