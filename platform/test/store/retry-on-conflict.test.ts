import { jest } from '@jest/globals';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { getOrCreate } from 'platform/store/get-or-create.ts';
import { keyedMutex } from 'platform/core/keyed-mutex.ts';
import { DuplicateKeyError, ExpectationFailedError } from 'platform/store/store.ts';

const notAborted = new AbortController().signal;

describe('an attempt to read, check and write', () => {
  it('is repeated after a conflict with another change, and not after any other error', async () => {
    let rounds = 0;
    expect(
      await retryOnConflict(notAborted, async () => {
        if (++rounds < 4) throw new ExpectationFailedError(0, 'things');
        return rounds;
      }),
    ).toBe(4);
    await expect(
      retryOnConflict(notAborted, async () => {
        rounds++;
        throw new Error('broken');
      }),
    ).rejects.toThrow('broken');
    expect(rounds).toBe(5);
  });

  it('is repeated at once after one conflict, and after a pause, up to ever longer ones, after further ones', async () => {
    const random = jest.spyOn(Math, 'random').mockReturnValue(1);
    const steps: (string | number)[] = [];
    const attempt = async (): Promise<void> => {
      steps.push('attempt');
      if (steps.filter((step) => step === 'attempt').length < 8) throw new ExpectationFailedError(0, 'things');
    };
    const pause = async (ms: number): Promise<void> => {
      await new Promise(setImmediate);
      steps.push(ms);
    };
    await retryOnConflict(notAborted, attempt, pause);
    random.mockRestore();
    const pauses = [4, 8, 16, 32, 64, 64];
    expect(steps).toEqual(['attempt', 'attempt', ...pauses.flatMap((ms) => [ms, 'attempt'])]);
  });

  it('does not start for a caller that is gone, whether it left while it waited or between two attempts', async () => {
    const mutex = keyedMutex();
    const gate = Promise.withResolvers<void>();
    const leaving = new AbortController();
    let rounds = 0;
    const round = async (): Promise<void> => {
      rounds++;
      leaving.abort();
      throw new ExpectationFailedError(0, 'things');
    };
    const first = mutex('o', 'x', () => gate.promise);
    const [waited, other] = [new AbortController(), mutex('o', 'y', () => retryOnConflict(leaving.signal, round))];
    const gone = mutex('o', 'x', () => retryOnConflict(waited.signal, round));
    const last = mutex('o', 'x', async () => 'last');
    waited.abort();
    gate.resolve();
    await first;
    for (const rejected of [gone, other]) await expect(rejected).rejects.toMatchObject({ reason: 'CLIENT_GONE' });
    expect(await last).toBe('last');
    expect(rounds).toBe(1);
  });
});

it('work of one organization never waits for that of another, whatever key it names', async () => {
  const mutex = keyedMutex();
  const gate = Promise.withResolvers<void>();
  const held = mutex('one', 'x', () => gate.promise);
  const behind = mutex('one', 'x', async () => 'behind');
  expect(await mutex('two', 'x', async () => 'free')).toBe('free');
  expect(await Promise.race([behind, mutex('two', 'x', async () => 'free again')])).toBe('free again');
  gate.resolve();
  await held;
  expect(await behind).toBe('behind');
});

it('work is done after that of the same key has failed', async () => {
  const mutex = keyedMutex();
  const failing = mutex('one', 'x', () => Promise.reject(new Error('broken')));
  const behind = mutex('one', 'x', async () => 'done');
  await expect(failing).rejects.toThrow('broken');
  expect(await behind).toBe('done');
});

describe('getOrCreate', () => {
  it('resolves to the same for all concurrent callers', async () => {
    let there: { by: number } | undefined;
    const make = (by: number) =>
      getOrCreate(
        async () => there,
        { by },
        async (first) => {
          await new Promise(setImmediate);
          if (there) throw new DuplicateKeyError('things', ['_id']);
          there = first;
        },
      );
    const made = await Promise.all([1, 2, 3].map(make));
    expect(new Set(made).size).toBe(1);
    expect(await make(4)).toBe(made[0]);
  });
});
