import { expect, test } from 'vitest';
import { counts, percentile, STEP_MS, STEPS } from './activity';

test('a percentile is a duration that was measured', () => {
  const samples = Array.from({ length: 100 }, (_, index) => ({ ms: 100 - index }));
  expect(percentile(samples, 0.5)).toBe(50);
  expect(percentile(samples, 0.99)).toBe(99);
  expect(percentile([{ ms: 7 }], 0.5)).toBe(7);
  expect(percentile([], 0.5)).toBeUndefined();
});

test('calls are counted in the step in which they began, and old ones not at all', () => {
  const now = 1_000 * STEP_MS;
  const found = counts(
    [{ at: now - 1 }, { at: now - 2 }, { at: now - STEP_MS - 1 }, { at: now - (STEPS + 1) * STEP_MS }],
    now,
  );
  expect(found.slice(-2)).toEqual([1, 2]);
  expect(found.reduce((sum, count) => sum + count)).toBe(3);
});
