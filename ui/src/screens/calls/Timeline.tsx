import { counts, STEPS } from '../../data/activity';

const WIDTH = 300;
const HEIGHT = 56;

/** Calls and errors over the last minutes, as bars. */
export function Timeline({ samples, now }: { samples: { at: number; isError: boolean }[]; now: number }) {
  const all = counts(samples, now);
  const bad = counts(
    samples.filter(({ isError }) => isError),
    now,
  );
  const most = Math.max(1, ...all);
  const width = WIDTH / STEPS;
  const failed = samples.filter(({ isError }) => isError).length;
  return (
    <svg
      className="timeline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`${samples.length} calls in the last five minutes, ${failed} failed; at most ${most} in ten seconds`}
    >
      {all.map((count, index) => {
        const height = (count / most) * (HEIGHT - 2);
        const errors = (bad[index] / most) * (HEIGHT - 2);
        return (
          <g key={index}>
            <rect className="calls" x={index * width} y={HEIGHT - height} width={width - 1} height={height} />
            <rect className="errors" x={index * width} y={HEIGHT - errors} width={width - 1} height={errors} />
          </g>
        );
      })}
    </svg>
  );
}
