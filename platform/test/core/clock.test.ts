import { followTime, isoTime, requireTime, systemClock } from 'platform/core/clock.ts';
import { newId, timeOfId } from 'platform/core/ids.ts';

const storeAhead = (ms: number) => async () => Date.now() + ms;
const aheadOf = (ms: number): number => Math.round((ms - Date.now()) / 60_000) + 0;

describe('a process on a shared store', () => {
  afterAll(() => followTime(storeAhead(0)));

  it.each([5, -5, 0])("uses the store's time, which differs by %i minutes, for times and ids", async (minutes) => {
    await followTime(storeAhead(minutes * 60_000));
    expect([aheadOf(systemClock.now()), aheadOf(timeOfId(newId()))]).toEqual([minutes, minutes]);
  });

  it.each([61, -61, 60 * 24 * 365 * 3])(
    'does not use the time of a store that differs by %i minutes: the correction stays as it was',
    async (minutes) => {
      await followTime(storeAhead(2 * 60_000));
      await expect(followTime(storeAhead(minutes * 60_000))).rejects.toMatchObject({
        name: 'ServiceError',
        reason: 'UNAVAILABLE',
        message: expect.stringMatching(
          /^The clock of the document store is [\d.]+ hours (ahead of|behind) this machine's/,
        ),
      });
      expect([aheadOf(systemClock.now()), aheadOf(timeOfId(newId()))]).toEqual([2, 2]);
    },
  );

  it('makes ids that rise, and ignores the error of a measurement', async () => {
    const ids: string[] = [];
    expect(await followTime(storeAhead(-300_000))).toBeLessThan(-290_000);
    for (let turn = 0; turn < 200; turn++) {
      if (turn % 50 === 0) expect(await followTime(storeAhead(-300_000 + turn))).toBeUndefined();
      ids.push(newId());
    }
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(200);
  });
});

it.each<[string, string | undefined]>([
  ['2028-02-29T12:00Z', '2028-02-29T12:00:00.000Z'],
  ['2026-03-01T00:30:00.25+01:00', '2026-02-28T23:30:00.250Z'],
  ['2026-02-29T12:00:00Z', undefined],
  ['2026-04-31T12:00:00Z', undefined],
  ['2026-13-01T12:00:00Z', undefined],
  ['2026-03-01T12:00:00', undefined],
  ['99999999999999999999', undefined],
])('%s is the time %s', (text, time) => {
  if (time === undefined) expect(() => requireTime('/since', text)).toThrow('since must be an ISO 8601 time');
  else expect(isoTime(requireTime('/since', text))).toBe(time);
});
