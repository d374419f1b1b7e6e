import './diff.css';
import { VisuallyHidden } from '@mantine/core';
import { diffLines, hunks } from './diff';

const MARKS = { same: ' ', added: '+', removed: '−' };
const WORDS = { same: '', added: 'added: ', removed: 'removed: ' };

/** Two texts as one, with what was added and removed marked by sign, colour and word. */
export function DiffView({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = hunks(diffLines(before, after));
  return (
    <pre className="diff" tabIndex={0} aria-label={label}>
      {lines.map((line, index) =>
        line === undefined ? (
          <span key={index} className="diff-line">
            {'⋯\n'}
          </span>
        ) : (
          <span key={index} className="diff-line" data-kind={line.kind}>
            <span aria-hidden="true">{MARKS[line.kind]} </span>
            <VisuallyHidden component="span">{WORDS[line.kind]}</VisuallyHidden>
            {line.text}
            {'\n'}
          </span>
        ),
      )}
    </pre>
  );
}
