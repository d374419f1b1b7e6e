import { Text } from '@mantine/core';

const SHOWN = 8;

/** A list of names after a word; of many, the first and how many more there are. */
export function Names({ word, names }: { word: string; names: string[] }) {
  if (names.length === 0) return null;
  const more = names.length - SHOWN;
  return (
    <Text size="sm">
      {word} {names.length === 1 ? '' : `${names.length}: `}
      <span className="mono">{names.slice(0, SHOWN).join(', ')}</span>
      {more > 0 && <span title={names.slice(SHOWN).join(', ')}> and {more} more</span>}
    </Text>
  );
}
