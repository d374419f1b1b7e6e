import { expect, test } from 'vitest';
import { barsOf, type CallStatistics, percent, totalOf } from './statistics';

const numbers = { p50_ms: 1, p95_ms: 2, p99_ms: 3, max_ms: 4 };
const point = (t_ms: number, count: number, errors: number) => ({ t_ms, count, errors, ...numbers });

test('all series of an interval are one bar, and empty intervals have one too', () => {
  const statistics: CallStatistics = {
    from_ms: 1000,
    to_ms: 3500,
    step_ms: 1000,
    cut: false,
    series: [
      { key: 'ok', total: { count: 5, errors: 0, ...numbers }, points: [point(1000, 3, 0), point(3000, 2, 0)] },
      { key: 'timeout', total: { count: 1, errors: 1, ...numbers }, points: [point(3000, 1, 1)] },
    ],
  };
  const bars = barsOf(statistics);
  expect(bars.map(({ count, errors }) => [count, errors])).toEqual([
    [3, 0],
    [0, 0],
    [3, 1],
  ]);
  expect(bars.at(-1)?.to).toBe(3500);
  expect(totalOf(bars)).toEqual({ count: 6, errors: 1 });
});

test('small shares keep a digit, and nothing of nothing is no share', () => {
  expect([percent(1, 1000), percent(1, 4), percent(0, 3), percent(0, 0)]).toEqual(['0.1 %', '25 %', '0 %', '–']);
});
