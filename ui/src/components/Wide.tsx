import './wide.css';
import type { ReactNode } from 'react';

/** Holds what may be wider than the screen, and lets the keyboard scroll it. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="wide" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
