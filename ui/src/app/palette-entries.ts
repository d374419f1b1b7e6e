export interface Entry {
  to: string;
  label: string;
  kind: string;
  about: string;
}

const SHOWN = 30;
const RECENT = 'switchboard-recent';
const KEPT = 12;

/** The entries that hold every word, those whose name begins with the text first. */
export function matching(entries: Entry[], text: string): { shown: Entry[]; total: number } {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const scored: { entry: Entry; score: number }[] = [];
  for (const entry of entries) {
    const label = entry.label.toLowerCase();
    const rest = `${entry.kind} ${entry.about}`.toLowerCase();
    let score = 0;
    for (const word of words) {
      if (label === word) score += 8;
      else if (label.startsWith(word)) score += 4;
      else if (label.includes(word)) score += 2;
      else if (!rest.includes(word)) score = Number.NEGATIVE_INFINITY;
    }
    if (score > Number.NEGATIVE_INFINITY) scored.push({ entry, score });
  }
  // Sorting is stable: equal ones keep the order of the list.
  scored.sort((a, b) => b.score - a.score);
  return { shown: scored.slice(0, SHOWN).map(({ entry }) => entry), total: scored.length };
}

function recent(): string[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(RECENT) ?? '[]');
    return Array.isArray(stored) ? stored.filter((entry) => typeof entry === 'string') : [];
  } catch {
    return [];
  }
}

export function remember(entry: Entry): void {
  const kept = [entry.to, ...recent().filter((to) => to !== entry.to)].slice(0, KEPT);
  sessionStorage.setItem(RECENT, JSON.stringify(kept));
}

export function recentFirst(entries: Entry[]): Entry[] {
  const order = new Map(recent().map((to, index) => [to, index]));
  const rank = ({ to }: Entry) => order.get(to) ?? KEPT;
  return [...entries].sort((a, b) => rank(a) - rank(b));
}
