import { ENDLESS, runners, SUCCEEDED, testPool, type TestPool } from './pool-fixture.ts';
import { until } from './runner-processes.ts';

describe('organizations that share the runners', () => {
  let pool: TestPool;
  const floods: AbortController[] = [];
  afterEach(async () => {
    for (const flood of floods.splice(0)) flood.abort();
    await pool.stop();
  });

  let started: string[];
  beforeEach(() => {
    started = [];
  });
  /** Runs that never end by themselves, until the flood is aborted; each notes its organization when it starts. */
  function flood(organizationId: string, count: number): AbortController {
    const caller = new AbortController();
    floods.push(caller);
    for (let n = 0; n < count; n++)
      void pool
        .run(ENDLESS, { organizationId, signal: caller.signal, onStart: () => started.push(organizationId) })
        .catch(() => undefined);
    return caller;
  }
  const run = (organizationId: string) =>
    pool.run('1 + 1', { organizationId, onStart: () => started.push(organizationId) });

  const startsOf = (organizationId: string) => started.filter((other) => other === organizationId).length;

  it('one with nothing running waits for no other, however many runs the others have waiting', async () => {
    pool = testPool({ size: 2, maxSize: 16, queueLimit: 1_000 });
    const others = ['a', 'b', 'c', 'd'];
    for (const other of others) flood(other, 20);
    await until(() => others.every((other) => startsOf(other) > 0));
    expect(await run('e')).toEqual(SUCCEEDED);
    // The first came when nobody else asked, so it has both runners; each of the others has one.
    await until(() => startsOf('a') === 2);
    expect(others.slice(1).map(startsOf)).toEqual([1, 1, 1]);
    expect(pool.queued).toBe(4 * 20 - 5);
  });

  it('one with 500 waiting runs delays another one, where no further runner may start, by one run at most', async () => {
    pool = testPool({ size: 1, maxSize: 1, queueLimit: 1_000 });
    const first = flood('many', 1);
    await until(() => started.length === 1);
    const gone = new AbortController();
    floods.push(gone);
    const onStart = () => started.push('many');
    for (let n = 0; n < 500; n++)
      void pool.run('1 + 1', { organizationId: 'many', signal: gone.signal, onStart }).catch(() => undefined);
    const few = run('few');
    expect(pool.queued).toBe(501);
    first.abort();
    expect(await few).toEqual(SUCCEEDED);
    expect(started.indexOf('few')).toBeLessThanOrEqual(2);
  });

  it('runners beyond the usual number end when nobody has used them for a while', async () => {
    pool = testPool({ size: 1, maxSize: 4, idleMs: 1 });
    const caller = flood('a', 1);
    expect(await Promise.all([run('b'), run('c')])).toEqual([SUCCEEDED, SUCCEEDED]);
    expect(runners().length).toBeGreaterThan(1);
    caller.abort();
    expect(await run('b')).toEqual(SUCCEEDED);
    await until(() => runners().length === 1);
  });

  it('and are used again until then', async () => {
    pool = testPool({ size: 1, maxSize: 2, idleMs: 600_000 });
    flood('a', 1);
    expect(await run('b')).toEqual(SUCCEEDED);
    const both = runners();
    expect(both).toHaveLength(2);
    expect([await run('b'), await run('c')]).toEqual([SUCCEEDED, SUCCEEDED]);
    expect(runners()).toEqual(both);
  });

  it('while all are in use, a spare one is started before anybody asks for it, and stays', async () => {
    pool = testPool({ size: 1, maxSize: 8, idleMs: 1 });
    flood('a', 1);
    await until(() => runners().length === 2);
    const both = runners();
    expect(await run('b')).toEqual(SUCCEEDED);
    expect(runners()).toEqual(expect.arrayContaining(both.slice(0, 1)));
    await until(() => runners().length === 2);
  });

  it('beyond the most runners, those with nothing running come first, in turn', async () => {
    pool = testPool({ size: 1, maxSize: 2 });
    const [a, b] = [flood('a', 1), flood('b', 1)];
    await until(() => started.length === 2);
    const waiting = ['a', 'c', 'c', 'd'].map(run);
    b.abort();
    await Promise.all(waiting.slice(1));
    a.abort();
    await Promise.all(waiting);
    expect(started.slice(2)).toEqual(['c', 'd', 'c', 'a']);
  });

  it('one that holds all runners gets no further one', async () => {
    pool = testPool({ size: 1, maxSize: 2, idleMs: 600_000 });
    flood('a', 10);
    await until(() => startsOf('a') === 1);
    expect(await run('b')).toEqual(SUCCEEDED);
    expect(await run('b')).toEqual(SUCCEEDED);
    expect([startsOf('a'), pool.queued, runners().length]).toEqual([1, 9, 2]);
  });
});
