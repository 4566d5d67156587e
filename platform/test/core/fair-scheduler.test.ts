import { fairScheduler } from 'platform/core/fair-scheduler.ts';

const LONG_MS = 50;

/** A scheduler whose clock advances only by the duration that each piece of work is given, and by its own pauses. */
function startScheduler() {
  let nowMs = 0;
  const pauses: number[] = [];
  const schedule = fairScheduler({
    nowMs: () => nowMs,
    wakeAfter(ms, wake) {
      pauses.push(ms);
      setImmediate(() => {
        nowMs += ms;
        wake();
      });
    },
  });
  const done: string[] = [];
  const work = (organizationId: string, name: string, takesMs: number) =>
    schedule(organizationId, () => {
      nowMs += takesMs;
      done.push(name);
      return name;
    });
  return { schedule, done, work, pauses };
}

describe('fairScheduler', () => {
  it('serves organizations round-robin, and each of them in the order of its calls', async () => {
    const { done, work } = startScheduler();
    await Promise.all([
      ...['a1', 'a2', 'a3', 'a4'].map((name) => work('a', name, LONG_MS)),
      ...['b1', 'b2'].map((name) => work('b', name, LONG_MS)),
      work('c', 'c1', LONG_MS),
    ]);
    expect(done).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  it.each([0.5, 1.5, 2.5, 3.5, 4.5, 5.5])('waits for no negative time when it wakes %d ms early', async (earlyMs) => {
    let nowMs = 0;
    const pauses: number[] = [];
    const schedule = fairScheduler({
      // time passes between two looks at the clock
      nowMs: () => (nowMs += 1),
      wakeAfter(ms, wake) {
        pauses.push(ms);
        nowMs += Math.max(0, ms - earlyMs);
        setImmediate(wake);
      },
    });
    await Promise.all(['a', 'a', 'a', 'a'].map((id) => schedule(id, () => void (nowMs += LONG_MS))));
    expect(pauses.length).toBeGreaterThan(0);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(0);
  });

  it('gives others as much time as the last piece of an organization took', async () => {
    const { done, work, pauses } = startScheduler();
    await Promise.all([
      work('a', 'a1', 400),
      work('a', 'a2', 400),
      ...Array.from({ length: 100 }, (_, i) => work('b', `b${i}`, 4)),
      work('a', 'a3', 0),
    ]);
    // 100 pieces of 4 ms are as much as a1 took; after a2 nobody else has work, and the thread is left to the rest.
    expect(done.slice(0, 2)).toEqual(['a1', 'b0']);
    expect(done.slice(-3)).toEqual(['b99', 'a2', 'a3']);
    expect(pauses).toEqual([400]);
  });

  it('makes nobody wait for long after the whole process stood still', async () => {
    const { work, pauses } = startScheduler();
    await Promise.all([work('a', 'a1', 60_000), work('a', 'a2', 0)]);
    expect(pauses).toEqual([500]);
  });

  it('runs what another organization brings while one is paused', async () => {
    const done: string[] = [];
    const wakes: (() => void)[] = [];
    let nowMs = 0;
    const schedule = fairScheduler({ nowMs: () => nowMs, wakeAfter: (_, wake) => void wakes.push(wake) });
    const paused = [() => (nowMs += 50), () => done.push('a')].map((work) => schedule('a', work));
    await paused[0];
    await new Promise((turned) => setImmediate(turned));
    await schedule('b', () => done.push('b'));
    expect(done).toEqual(['b']);
    nowMs += 50;
    wakes.forEach((wake) => wake());
    await paused[1];
    expect(done).toEqual(['b', 'a']);
  });

  it('lets the event loop run between two long pieces', async () => {
    const { done, work } = startScheduler();
    const flood = Promise.all(Array.from({ length: 40 }, (_, i) => work('a', `a${i}`, LONG_MS)));
    await new Promise<void>((answered) => setImmediate(() => setImmediate(answered)));
    await work('b', 'b', 0);
    expect(done.length).toBeLessThan(6);
    await flood;
    expect(done).toHaveLength(41);
  });

  it('runs many short pieces in one turn of the event loop', async () => {
    const { done, work } = startScheduler();
    const all = Promise.all(Array.from({ length: 40 }, (_, i) => work('a', `a${i}`, 0)));
    await new Promise<void>((turned) => setImmediate(turned));
    expect(done).toHaveLength(40);
    await all;
  });

  it('rejects when the work throws, and runs the next piece', async () => {
    const { schedule, work } = startScheduler();
    const failing = schedule('a', () => {
      throw new Error('no');
    });
    const next = work('a', 'next', 0);
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('next');
    expect(await work('a', 'later', 0)).toBe('later');
  });

  it('lets work schedule more work', async () => {
    const schedule = fairScheduler();
    await expect(schedule('a', () => schedule('a', () => 'inner'))).resolves.toBe('inner');
  });
});
