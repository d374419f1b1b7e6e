/** The difference between two texts, line by line. Pure. */
export interface DiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** Larger middles are shown as removed and added whole: the table of a comparison grows with the product. */
const MOST_CELLS = 4_000_000;

const marked = (kind: DiffLine['kind'], lines: string[]): DiffLine[] => lines.map((text) => ({ kind, text }));

/** The lines of both texts with as many kept as possible. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before === '' ? [] : before.split('\n');
  const b = after === '' ? [] : after.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail])
    tail += 1;
  const middle = between(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return [...marked('same', a.slice(0, head)), ...middle, ...marked('same', a.slice(a.length - tail))];
}

function between(a: string[], b: string[]): DiffLine[] {
  if (a.length === 0 || b.length === 0 || a.length * b.length > MOST_CELLS) {
    return [...marked('removed', a), ...marked('added', b)];
  }
  // `common[i][j]` is the length of the longest common part of a[i..] and b[j..].
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i] });
      i += 1;
      j += 1;
    } else if (common[(i + 1) * width + j] >= common[i * width + j + 1]) {
      lines.push({ kind: 'removed', text: a[i] });
      i += 1;
    } else {
      lines.push({ kind: 'added', text: b[j] });
      j += 1;
    }
  }
  return [...lines, ...marked('removed', a.slice(i)), ...marked('added', b.slice(j))];
}

/** The changed lines with some around them; `undefined` stands for lines that are left out. */
export function hunks(lines: DiffLine[], around = 3): (DiffLine | undefined)[] {
  const shown: (DiffLine | undefined)[] = [];
  const near = lines.map(() => false);
  lines.forEach(({ kind }, index) => {
    if (kind === 'same') return;
    for (let at = Math.max(0, index - around); at <= Math.min(lines.length - 1, index + around); at += 1)
      near[at] = true;
  });
  lines.forEach((line, index) => {
    if (near[index]) shown.push(line);
    else if (shown.at(-1) !== undefined || shown.length === 0) shown.push(undefined);
  });
  return shown;
}
