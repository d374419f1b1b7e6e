/** Ids of turns: UUIDs of version 7, whose first 48 bits are the time. The board makes such ids too. */

/** An id for a turn that begins now. Works without `crypto.randomUUID`, which browsers keep from pages without TLS. */
export function newTurnId(now = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  for (let place = 0; place < 6; place += 1) bytes[place] = Math.floor(now / 2 ** (8 * (5 - place))) % 256;
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** When a turn began, in milliseconds since 1970; `undefined` when its id, which an app chose, does not tell. */
export function timeOfTurn(id: string): number | undefined {
  const digits = id.replaceAll('-', '');
  return /^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/.test(digits) ? parseInt(digits.slice(0, 12), 16) : undefined;
}
