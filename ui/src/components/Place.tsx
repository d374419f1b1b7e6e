/** The directories before a file and its line, as in `/etc/switchboard/board.yaml:3:1`. */
const DIRECTORIES = /^\S*\/(?=[^/\s]+:\d+(:\d+)?\b)/;

/** A place in a file, without the directories: they stand in the title, and are the same in most places. */
export const shortPlace = (place: string): string => place.replace(DIRECTORIES, '');

/** Where a value was written. */
export function Place({ of }: { of: string }) {
  return (
    <span className="mono place" title={of}>
      {shortPlace(of)}
    </span>
  );
}
