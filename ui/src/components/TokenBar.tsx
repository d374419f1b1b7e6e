import './token-bar.css';
import { VisuallyHidden } from '@mantine/core';

interface TokenBarProps {
  tokens: number;
  /** The number that fills the bar. */
  most: number;
  isExact: boolean;
  label?: string;
}

/** A number of tokens as a bar. An estimate is striped, and says so. */
export function TokenBar({ tokens, most, isExact, label }: TokenBarProps) {
  const share = most > 0 ? Math.min(100, (100 * tokens) / most) : 0;
  const words = `${isExact ? '' : 'about '}${tokens} tokens`;
  return (
    <span className="token-bar" title={words}>
      <span className="token-track" aria-hidden="true">
        <span className="token-fill" data-estimate={!isExact || undefined} style={{ width: `${share}%` }} />
      </span>
      <span className="token-number">
        {label && <VisuallyHidden component="span">{label}: </VisuallyHidden>}
        {isExact ? '' : '~'}
        {tokens}
      </span>
    </span>
  );
}
