import { expect, test } from 'vitest';
import { follows, LET_GO, TAKE_HOLD } from './follow-end';

test.each([
  ['a scroll upwards lets go', true, LET_GO + 1, -5, false],
  ['a tremble at the end does not', true, LET_GO, -5, true],
  ['a reader above stays there when text arrives', false, 900, 0, false],
  ['a scroll downwards far from the end does not take hold', false, TAKE_HOLD + 1, 40, false],
  ['near the end it does', false, TAKE_HOLD, 40, true],
  ['a scroll upwards near the end does not', false, 10, -40, false],
  ['text that arrives does not let go', true, 900, 0, true],
  ['the program that scrolls to the end does not let go', true, 300, 500, true],
])('%s', (_, was, distance, moved, expected) => {
  expect(follows(was, distance, moved)).toBe(expected);
});
