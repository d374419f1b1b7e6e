import { expect, test } from 'vitest';
import { newTurnId, timeOfTurn } from './turn-id';

test('an id of a turn tells when it began, and is another each time', () => {
  const at = 1_795_034_740_123;
  expect(timeOfTurn(newTurnId(at))).toBe(at);
  expect(newTurnId(at)).not.toBe(newTurnId(at));
  expect(timeOfTurn('019d2f7a-1c5b-7e3a-9f00-0123456789ab')).toBe(0x019d2f7a1c5b);
});

test('ids that say nothing of time have none', () => {
  for (const id of ['t1', '', 'm4', '4f9d2f7a-1c5b-4e3a-9f00-0123456789ab', '019d2f7a1c5b7e3a0f000123456789ab'])
    expect(timeOfTurn(id)).toBeUndefined();
});
