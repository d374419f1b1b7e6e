/** A number that lights up when it changes. */
export function Tick({ value, label }: { value: number; label?: string }) {
  return (
    <span
      key={value}
      className="tick"
      data-value={value}
      aria-label={label ? `${label} ${value}` : undefined}
      role={label ? 'status' : undefined}
    >
      {value}
    </span>
  );
}
