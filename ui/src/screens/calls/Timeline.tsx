import { duration } from '../../components/time';
import { type Bar, totalOf } from './statistics';

const WIDTH = 600;
const HEIGHT = 72;

const clock = (at: number): string => new Date(at).toLocaleString([], { dateStyle: 'short', timeStyle: 'medium' });

/** Calls and errors over time, as bars. Each bar says its numbers under the pointer. */
export function Timeline({ bars, period }: { bars: Bar[]; period: string }) {
  const most = Math.max(1, ...bars.map(({ count }) => count));
  const width = WIDTH / Math.max(1, bars.length);
  const { count, errors } = totalOf(bars);
  const step = bars.length === 0 ? 0 : bars[0].to - bars[0].from;
  return (
    <svg
      className="timeline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${count} calls in the ${period}, ${errors} failed; at most ${most} in ${duration(step)}`}
    >
      {bars.map((bar, index) => {
        const height = (bar.count / most) * (HEIGHT - 2);
        const failed = (bar.errors / most) * (HEIGHT - 2);
        return (
          <g key={bar.from}>
            <title>{`${clock(bar.from)}: ${bar.count} calls, ${bar.errors} failed`}</title>
            <rect className="place" x={index * width} y={0} width={width} height={HEIGHT} />
            <rect className="calls" x={index * width} y={HEIGHT - height} width={width * 0.85} height={height} />
            <rect className="errors" x={index * width} y={HEIGHT - failed} width={width * 0.85} height={failed} />
          </g>
        );
      })}
    </svg>
  );
}
