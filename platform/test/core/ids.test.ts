import { followTime, systemClock } from 'platform/core/clock.ts';
import { isUuid, newId, timeOfId } from 'platform/core/ids.ts';

const machineNow = Date.now;
const SECOND_MS = 1_000;
const HALF_HOUR_MS = 1_800_000;

describe('ids on a machine whose clock is set', () => {
  let machineMs: number;
  let seed: number;
  // Each case starts long after the end of the one before.
  let startMs = machineNow();
  beforeEach(() => {
    machineMs = startMs += 2 * HALF_HOUR_MS;
    Date.now = () => machineMs;
  });
  afterEach(async () => {
    Date.now = machineNow;
    await followTime(async () => machineNow());
  });
  /** From 0 to below `limit`; the same in every run. */
  const random = (limit: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * limit);
  };

  it.each([1, 2, 3, 4, 5])(
    'rise while it stands still, advances or is set back by less than a second (random walk %i)',
    (walk) => {
      seed = walk;
      const faults: string[] = [];
      let latest = '';
      let highestMs = 0;
      for (let step = 0; step < 3_000; step++) {
        // Back, by less than a second behind the latest time so far, or forward, or not at all.
        machineMs = Math.max(machineMs + [0, 0, 1, random(50), -random(200)][random(5)]!, highestMs - SECOND_MS + 1);
        highestMs = Math.max(highestMs, machineMs);
        const id = newId();
        if (id <= latest || !isUuid(id) || id[14] !== '7' || timeOfId(id) !== highestMs)
          faults.push(`step ${step}: ${id} after ${latest}`);
        latest = id;
      }
      expect(faults).toEqual([]);
    },
  );

  it.each([1, 2, 3, 4, 5])(
    'are always within a second of the time, however the clocks of machine and store are set (random walk %i)',
    async (walk) => {
      seed = walk;
      const made = new Set<string>();
      let furthestMs = 0;
      let aheadMs = 0;
      for (let step = 0; step < 2_000; step++) {
        machineMs += [0, 1, -random(SECOND_MS), random(HALF_HOUR_MS) - HALF_HOUR_MS / 2][random(4)]!;
        if (random(10) === 0) {
          aheadMs = random(HALF_HOUR_MS) - HALF_HOUR_MS / 2;
          await followTime(async () => machineMs + aheadMs);
        }
        const id = newId();
        furthestMs = Math.max(furthestMs, Math.abs(timeOfId(id) - systemClock.now()));
        made.add(id);
      }
      expect(furthestMs).toBeLessThan(SECOND_MS);
      expect(made.size).toBe(2_000);
    },
  );

  it('stay at the right time when the machine is set back and the store corrects that', async () => {
    newId();
    const rightMs = machineMs;
    machineMs -= 600_000;
    await followTime(async () => rightMs);
    expect(Math.abs(timeOfId(newId()) - rightMs)).toBeLessThan(SECOND_MS);
  });
});

it('ids of one millisecond rise, and their last part is random', () => {
  const ids = Array.from({ length: 20_000 }, newId);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids.map((id) => id.slice(24))).size).toBe(ids.length);
});
