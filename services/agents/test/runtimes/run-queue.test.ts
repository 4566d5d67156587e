import fc from 'fast-check';
import { runQueue, type RunQueue } from '../../src/runtimes/run-queue.ts';

/** A queue of runs that are named by their organization and a number: "a1". */
function queueOf(options: { size: number; maxSize: number; limit?: number }) {
  const queue = runQueue<string>({ limit: 100, ...options });
  const organizationOf = (run: string): string => run[0] as string;
  return {
    ...queue,
    admit: (run: string) => queue.admit(organizationOf(run), { spare: false }),
    push: (run: string) => queue.push(organizationOf(run), run),
    end: (run: string, cpuMs = 1) => queue.end(organizationOf(run), cpuMs),
    get length() {
      return queue.length;
    },
  };
}

describe('the queue of runs', () => {
  it('lets one organization have every runner while nobody else asks, and then no further one', () => {
    const queue = queueOf({ size: 2, maxSize: 8 });
    expect(['a1', 'a2', 'a3'].map(queue.admit)).toEqual([true, true, false]);
    queue.push('a3');
    expect(queue.next()).toBeUndefined();
  });

  it('gives an organization with nothing running a further runner, up to the maximum', () => {
    const queue = queueOf({ size: 1, maxSize: 3 });
    expect(['a1', 'b1', 'c1', 'd1'].map(queue.admit)).toEqual([true, false, false, false]);
    for (const run of ['b1', 'b2', 'c1', 'd1']) queue.push(run);
    expect([queue.next(), queue.next(), queue.next()]).toEqual(['b1', 'c1', undefined]);
    queue.end('a1');
    expect(queue.next()).toBe('d1');
  });

  it('serves the organization with the fewest running runs first', () => {
    const queue = queueOf({ size: 3, maxSize: 3 });
    for (const run of ['a1', 'a2', 'b1']) queue.admit(run);
    for (const run of ['a3', 'b2', 'c1']) queue.push(run);
    const ended = ['a1', 'b1', 'a2'].map((run) => {
      queue.end(run);
      return queue.next();
    });
    expect(ended).toEqual(['c1', 'b2', 'a3']);
  });

  it('serves organizations in turn, and each in the order of its runs, when all cost alike', () => {
    const queue = queueOf({ size: 1, maxSize: 1 });
    queue.admit('x');
    for (const run of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.push(run);
    const order: string[] = [];
    for (let run: string | undefined = 'x'; run; run = queue.next()) {
      order.push(run);
      queue.end(run);
    }
    expect(order.slice(1)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  it('gives as much processor time to an organization with long runs as to one with short runs', () => {
    const queue = queueOf({ size: 1, maxSize: 1, limit: 1_000 });
    queue.admit('x');
    for (let n = 0; n < 200; n++) for (const name of ['l', 's']) queue.push(`${name}${n}`);
    const used = { l: 0, s: 0, x: 0 };
    let run: string | undefined = 'x';
    for (let turn = 0; turn < 150; turn++) {
      const name = run![0] as keyof typeof used;
      const cpuMs = name === 'l' ? 500 : 10;
      used[name] += cpuMs;
      queue.end(run!, cpuMs);
      run = queue.next();
    }
    expect(Math.abs(used.l - used.s)).toBeLessThanOrEqual(500);
  });

  it('takes one that comes anew before those that have used time, but for the one that used the least', () => {
    const queue = queueOf({ size: 1, maxSize: 1 });
    queue.admit('x');
    for (const name of ['a', 'b', 'c', 'd']) for (const run of [`${name}1`, `${name}2`]) queue.push(run);
    let run: string | undefined = 'x';
    for (const cpuMs of [0, 1_000, 900, 800, 700]) {
      queue.end(run!, cpuMs);
      if (cpuMs === 700) queue.push('z1');
      run = queue.next();
    }
    expect(run).toBe('d2');
    queue.end('d2', 700);
    expect(queue.next()).toBe('z1');
  });

  it('does not let an organization catch up on time in which it did not ask', () => {
    const queue = queueOf({ size: 1, maxSize: 1 });
    const runAlone = (run: string) => {
      queue.admit(run);
      for (let n = 0; n < 10; n++) queue.push(`${run}${n}`);
      for (let next: string | undefined = run; next; next = queue.next()) queue.end(next, 1_000);
    };
    runAlone('a');
    queue.admit('x');
    for (const run of ['b1', 'b2', 'a1', 'a2']) queue.push(run);
    const order: string[] = [];
    for (let run: string | undefined = 'x'; run; run = queue.next()) {
      order.push(run);
      queue.end(run, 10);
    }
    expect(order).toEqual(['x', 'b1', 'a1', 'b2', 'a2']);
  });

  it('is full for the organization that fills it, not for another one', () => {
    const queue = queueOf({ size: 1, maxSize: 1, limit: 4 });
    queue.admit('x');
    expect(['a1', 'a2', 'a3', 'a4'].map(queue.push)).toEqual([undefined, undefined, undefined, undefined]);
    expect(['a5', 'b1', 'b2', 'b3', 'c1', 'd1', 'e1'].map(queue.push)).toEqual([
      'a5',
      'a4',
      'a3',
      'b3',
      'a2',
      'b2',
      'e1',
    ]);
    expect(queue.length).toBe(4);
  });

  it('keeps every promise in any order of events', () => {
    const events = fc.array(
      fc.oneof(
        {
          weight: 3,
          arbitrary: fc.record({ kind: fc.constant('arrive' as const), by: fc.nat(5), spare: fc.boolean() }),
        },
        {
          weight: 2,
          arbitrary: fc.record({ kind: fc.constant('end' as const), by: fc.nat(40), cpuMs: fc.nat(5_000) }),
        },
        { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), by: fc.nat(40) }) },
      ),
      { maxLength: 120 },
    );
    const sizes = fc.record({ size: fc.integer({ min: 1, max: 3 }), more: fc.nat(3), limit: fc.nat(6) });
    fc.assert(
      fc.property(sizes, events, ({ size, more, limit }, happening) => {
        const queue = runQueue<string>({ size, maxSize: size + more, limit });
        check(queue, { size, maxSize: size + more, limit }, happening);
      }),
      { numRuns: 500 },
    );
  });
});

type Event =
  | { kind: 'arrive'; by: number; spare: boolean }
  | { kind: 'leave'; by: number }
  | { kind: 'end'; by: number; cpuMs: number };

/** Plays the events against the queue, and compares it with plain lists of what runs and what waits. */
function check(
  queue: RunQueue<string>,
  { size, maxSize, limit }: { size: number; maxSize: number; limit: number },
  events: readonly Event[],
): void {
  const running: string[] = [];
  const waiting: string[] = [];
  const of = (runs: readonly string[], run: string) => runs.filter((other) => other[0] === run[0]);
  const begin = (run: string): void => {
    expect(running.length < size || (running.length < maxSize && of(running, run).length === 0)).toBe(true);
    running.push(run);
  };
  const beginWaiting = (run: string): void => {
    expect(of(waiting, run)[0]).toBe(run);
    waiting.splice(waiting.indexOf(run), 1);
    begin(run);
  };

  events.forEach((event, n) => {
    if (event.kind === 'arrive') {
      const run = `${'abcdef'[event.by]}${n}`;
      if (queue.admit(run[0]!, { spare: event.spare })) return begin(run);
      waiting.push(run);
      const left = queue.push(run[0]!, run);
      expect(left !== undefined).toBe(waiting.length > limit);
      if (left === undefined) return;
      expect(of(waiting, left).at(-1)).toBe(left);
      expect(waiting.every((other) => of(waiting, other).length <= of(waiting, left).length)).toBe(true);
      waiting.splice(waiting.indexOf(left), 1);
    } else if (event.kind === 'leave') {
      const run = waiting[event.by];
      if (run === undefined) return;
      waiting.splice(event.by, 1);
      queue.remove(run[0]!, run);
    } else {
      const [run] = running.splice(event.by % Math.max(1, running.length), 1);
      if (run === undefined) return;
      queue.end(run[0]!, event.cpuMs);
      const next = queue.next();
      if (next === undefined) {
        expect(waiting.length === 0 || running.length >= size).toBe(true);
        expect(waiting.filter((other) => of(running, other).length === 0)).toEqual([]);
      } else {
        const fewest = Math.min(...waiting.map((other) => of(running, other).length));
        expect(of(running, next).length).toBe(fewest);
        beginWaiting(next);
      }
    }
    expect([queue.running, queue.length]).toEqual([running.length, waiting.length]);
  });

  // Every organization with nothing running gets a runner, until the maximum is reached.
  for (let run = queue.next(); run !== undefined; run = queue.next()) beginWaiting(run);
  if (running.length < maxSize) expect(waiting.filter((run) => of(running, run).length === 0)).toEqual([]);
  expect(queue.clear().sort()).toEqual(waiting.sort());
}
