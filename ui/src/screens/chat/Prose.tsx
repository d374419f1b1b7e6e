import { lazy, memo, Suspense, useDeferredValue } from 'react';

const Markdown = lazy(() => import('./Markdown'));

/** Markdown that may still be growing. Until its reader is loaded, and for very long texts, it is shown as it was written. */
export const Prose = memo(function Prose({ text }: { text: string }) {
  const shown = useDeferredValue(text);
  const plain = <div className="plain">{text}</div>;
  if (text.length > 100_000) return plain;
  return (
    <Suspense fallback={plain}>
      <Markdown text={shown} />
    </Suspense>
  );
});
