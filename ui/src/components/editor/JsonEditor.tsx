/** A JSON editor. It is loaded when it is first shown. */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import { bracketMatching, defaultHighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { linter } from '@codemirror/lint';
import { Compartment, EditorState } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { nonce } from '../nonce';

export interface JsonEditorProps {
  /** What the field holds. A text that differs from what was last typed replaces it. */
  text: string;
  onChange?: (text: string) => void;
  label: string;
  onSubmit?: () => void;
}

const look = EditorView.theme({
  '&': {
    border: '1px solid var(--mantine-color-default-border)',
    borderRadius: 'var(--mantine-radius-sm)',
    fontSize: '13px',
  },
  '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)' },
  '.cm-content': {
    fontFamily: 'var(--mantine-font-family-monospace)',
    minHeight: '160px',
    caretColor: 'var(--mantine-color-text)',
  },
  '.cm-gutters': {
    background: 'var(--mantine-color-default-hover)',
    color: 'var(--mantine-color-dimmed)',
    border: 'none',
  },
  '.cm-cursor': { borderLeftColor: 'var(--mantine-color-text)' },
  '.cm-tooltip': { background: 'var(--mantine-color-body)', color: 'var(--mantine-color-text)' },
});

export default function JsonEditor({ text, onChange, label, onSubmit }: JsonEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const handlers = useRef({ onChange, onSubmit });
  const scheme = useComputedColorScheme('light');
  const dark = useRef(new Compartment());
  useEffect(() => {
    handlers.current = { onChange, onSubmit };
  });
  useEffect(() => {
    const submit = () => {
      handlers.current.onSubmit?.();
      return true;
    };
    const editor = new EditorView({
      parent: place.current as HTMLElement,
      state: EditorState.create({
        doc: text,
        extensions: [
          nonce === undefined ? [] : EditorView.cspNonce.of(nonce),
          keymap.of([{ key: 'Mod-Enter', run: submit }, ...defaultKeymap, ...historyKeymap]),
          history(),
          json(),
          linter(jsonParseLinter(), { delay: 300 }),
          lineNumbers(),
          drawSelection(),
          bracketMatching(),
          indentOnInput(),
          dark.current.of([]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorView.editable.of(onChange !== undefined),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) handlers.current.onChange?.(update.state.doc.toString());
          }),
          look,
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
    // The editor lives as long as the component; later texts are set below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  useEffect(() => {
    const highlight =
      scheme === 'dark' ? EditorView.theme({}, { dark: true }) : syntaxHighlighting(defaultHighlightStyle);
    view.current?.dispatch({ effects: dark.current.reconfigure(highlight) });
  }, [scheme]);
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== text) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
    }
  }, [text]);
  return <div ref={place} />;
}
