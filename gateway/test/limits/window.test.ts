import fc from 'fast-check';
import { countAt, secondsLeft, secondsUntilRoom, windowAt, type Admitted } from '../../src/limits/window.ts';

const MINUTE = 29_000_000;
const at = (seconds: number): number => MINUTE * 60_000 + seconds * 1_000;
/** The counts as they are at this time, if nothing more was admitted. */
function later(counts: Admitted, fromMs: number, toMs: number): Admitted {
  const windows = windowAt(toMs) - windowAt(fromMs);
  if (windows === 0) return counts;
  return { current: 0, previous: windows === 1 ? counts.current : 0 };
}

it('the window before counts by the part of it that lies in the last 60 s', () => {
  expect(countAt({ current: 10, previous: 600 }, at(0))).toBe(610);
  expect(countAt({ current: 10, previous: 600 }, at(30))).toBe(310);
  expect(secondsLeft(at(30))).toBe(30);
});

it('a client that waits as long as it is told is admitted, and would not have been a second before', () => {
  fc.assert(
    fc.property(
      fc.record({ current: fc.nat(2_000), previous: fc.nat(2_000) }),
      fc.integer({ min: 1, max: 1_000 }),
      fc.integer({ min: 0, max: 59_999 }),
      (counts, limit, ms) => {
        const now = MINUTE * 60_000 + ms;
        fc.pre(countAt(counts, now) + 1 > limit);
        const waitMs = secondsUntilRoom(counts, limit, now) * 1_000;
        const room = (then: number): boolean => countAt(later(counts, now, then), then) + 1 <= limit + 1e-9;
        expect(room(now + waitMs)).toBe(true);
        if (waitMs > 1_000) expect(room(now + waitMs - 1_000 - 1)).toBe(false);
      },
    ),
  );
});
