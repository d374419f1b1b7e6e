/** Statistics of calls as bars. Pure. */
import type { components } from '../../api/schema';

export type CallStatistics = components['schemas']['CallStatistics'];
export type CallNumbers = components['schemas']['CallNumbers'];

/** The calls of one interval. */
export interface Bar {
  from: number;
  to: number;
  count: number;
  errors: number;
}

/** One bar for each interval of the period, also for those without calls. */
export function barsOf({ from_ms, to_ms, step_ms, series }: CallStatistics): Bar[] {
  const bars = Array.from({ length: Math.max(1, Math.ceil((to_ms - from_ms) / step_ms)) }, (_, index): Bar => {
    const from = from_ms + index * step_ms;
    return { from, to: Math.min(from + step_ms, to_ms), count: 0, errors: 0 };
  });
  for (const { points } of series)
    for (const { t_ms, count, errors } of points) {
      const bar = bars[Math.floor((t_ms - from_ms) / step_ms)];
      if (bar === undefined) continue;
      bar.count += count;
      bar.errors += errors;
    }
  return bars;
}

export const totalOf = (bars: Bar[]): { count: number; errors: number } => ({
  count: bars.reduce((sum, { count }) => sum + count, 0),
  errors: bars.reduce((sum, { errors }) => sum + errors, 0),
});

/** A share in percent, with a digit after the point where it is small. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return '–';
  const share = (100 * part) / whole;
  return `${share > 0 && share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}
