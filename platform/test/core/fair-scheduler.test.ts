import { fairScheduler } from 'platform/core/fair-scheduler.ts';

const LONG_MS = 50;

/** A scheduler whose clock advances only by the duration that each piece of work is given. */
function startScheduler() {
  let nowMs = 0;
  const schedule = fairScheduler(() => nowMs);
  const done: string[] = [];
  const work = (organizationId: string, name: string, takesMs: number) =>
    schedule(organizationId, () => {
      nowMs += takesMs;
      done.push(name);
      return name;
    });
  return { schedule, done, work };
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
