/** A small plot as one SVG path. `label` says in words what it shows. */
export function Sparkline({
  values,
  label,
  width = 90,
  height = 20,
}: {
  values: number[];
  label: string;
  width?: number;
  height?: number;
}) {
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - 1);
  const y = (value: number) => (height - 1 - (value / most) * (height - 2)).toFixed(1);
  const line = values
    .map((value, index) => `${index === 0 ? 'M' : 'L'}${(index * step).toFixed(1)} ${y(value)}`)
    .join('');
  return (
    <svg
      className="sparkline"
      width={width}
      height={height}
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${height}`}
    >
      <path className="area" d={`${line}L${width} ${height}L0 ${height}Z`} />
      <path className="line" d={line} />
    </svg>
  );
}
