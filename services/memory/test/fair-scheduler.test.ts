import { fairScheduler } from '../src/fair-scheduler.ts';

const LONG_MS = 50;

/** Turns whose clock moves only by what a piece of work says it takes. */
function world() {
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

describe('long work of several organizations in one process', () => {
  it('goes on with one organization after the other, and with each in the order it came', async () => {
    const { done, work } = world();
    await Promise.all([
      ...['a1', 'a2', 'a3', 'a4'].map((name) => work('a', name, LONG_MS)),
      ...['b1', 'b2'].map((name) => work('b', name, LONG_MS)),
      work('c', 'c1', LONG_MS),
    ]);
    expect(done).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  it('lets the event loop turn between two long pieces: what is asked meanwhile is answered meanwhile', async () => {
    const { done, work } = world();
    const flood = Promise.all(Array.from({ length: 40 }, (_, i) => work('a', `a${i}`, LONG_MS)));
    await new Promise<void>((answered) => setImmediate(() => setImmediate(answered)));
    await work('b', 'b', 0);
    expect(done.length).toBeLessThan(6);
    await flood;
    expect(done).toHaveLength(41);
  });

  it('does short pieces together', async () => {
    const { done, work } = world();
    const all = Promise.all(Array.from({ length: 40 }, (_, i) => work('a', `a${i}`, 0)));
    await new Promise<void>((turned) => setImmediate(turned));
    expect(done).toHaveLength(40);
    await all;
  });

  it('tells of a failure, and goes on after it', async () => {
    const { schedule, work } = world();
    const failing = schedule('a', () => {
      throw new Error('no');
    });
    const next = work('a', 'next', 0);
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('next');
    expect(await work('a', 'later', 0)).toBe('later');
  });
});
