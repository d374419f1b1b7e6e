/** Names of settings as people write them, made from JSON pointers. */
interface Value {
  pointer: string;
  value?: unknown;
}

const plain = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');

/** The name of each list entry that has one, by the pointer of the entry. */
function namesOf(values: Value[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const { pointer, value } of values) {
    const entry = /^(.*\/\d+)\/name$/.exec(pointer)?.[1];
    if (entry !== undefined && typeof value === 'string') names.set(entry, value);
  }
  return names;
}

/**
 * The settings by their pointers: `/switchboard/toolbox/mcps/0/mode` is `toolbox.mcps[demo].mode` when the entry is called
 * demo, and `toolbox.mcps[0].mode` when it has no name.
 */
export function settingsOf(values: Value[]): Map<string, string> {
  const names = namesOf(values);
  const written = (pointer: string): string => {
    let text = '';
    let above = '';
    for (const part of pointer.split('/').slice(1)) {
      above += `/${part}`;
      if (/^\d+$/.test(part)) text += `[${names.get(above) ?? part}]`;
      else if (above !== '/switchboard') text += text === '' ? plain(part) : `.${plain(part)}`;
    }
    return text;
  };
  return new Map(values.map(({ pointer }) => [pointer, written(pointer)]));
}
