import { jest } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import pino from 'pino';
import { startJobs, type Job, type JobRunner } from 'platform/jobs/jobs.ts';
import { acquireLease, LEASES, releaseLease } from 'platform/jobs/lease.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { update, type OpenStore, type PlatformStore } from 'platform/store/store.ts';

const NEVER_MS = 1_000_000;

/** A promise for the test to resolve. */
const gate = () => Promise.withResolvers<void>();
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));

describe('jobs', () => {
  let folder: string;
  let open: OpenStore;
  let runners: JobRunner[];
  let logged: { level: number; job?: string; error?: { message: string } }[];
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'jobs-'));
    open = await openSqliteStore(join(folder, 'a.sqlite'), [LEASES]);
    runners = [];
    logged = [];
  });
  afterEach(async () => {
    await Promise.all(runners.map((runner) => runner.stop()));
    await open.close();
    rmSync(folder, { recursive: true });
  });

  function start(
    run: Job['run'],
    { owner = 'a', intervalMs = NEVER_MS, leaseMs = 60_000, platformStore = open.platformStore } = {},
  ): JobRunner {
    const log = pino(
      { errorKey: 'error' },
      new Writable({ write: (line, _, done) => (logged.push(JSON.parse(line)), done()) }),
    );
    const runner = startJobs([{ name: 'sweep', description: 'Sweeps.', intervalMs, run }], {
      platformStore,
      owner,
      leaseMs,
      log,
    });
    runners.push(runner);
    return runner;
  }

  it('run at the start, at their interval and when asked to', async () => {
    let rounds = 0;
    const third = gate();
    const runner = start(async () => (++rounds === 3 && third.resolve(), rounds), { intervalMs: 1 });
    await third.promise;
    expect((await runner.runNow('sweep')).ran).toBe(true);
    await expect(runner.runNow('nothing')).rejects.toMatchObject({ reason: 'NOT_FOUND' });
    expect(runner.list().map(({ name }) => name)).toEqual(['sweep']);
  });

  it('run at once when wanted soon, but pause after a round that processed something', async () => {
    const starts: number[] = [];
    const [first, second] = [gate(), gate()];
    const jobs: Job[] = [
      {
        name: 'relay',
        description: '',
        intervalMs: NEVER_MS,
        paceMs: NEVER_MS,
        run: async () => {
          if (starts.push(performance.now()) === 1) first.resolve();
          else second.resolve();
          return starts.length - 1;
        },
      },
      { name: 'beat', description: '', intervalMs: NEVER_MS, everyReplica: true, run: async () => 0 },
    ];
    const { platformStore } = open;
    const runner = startJobs(jobs, { platformStore, owner: 'a', leaseMs: 60_000, log: pino({ level: 'silent' }) });
    runners.push(runner);
    await first.promise;
    await runner.runNow('beat');
    runner.runSoon('relay');
    await second.promise;
    for (let turn = 0; turn < 20; turn++) {
      runner.runSoon('relay');
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    expect(starts).toHaveLength(2);
  });

  it('without an interval run only on request, and release the lease for the replica that is asked next', async () => {
    const run = { one: 0, other: 0 };
    const log = pino({ level: 'silent' });
    const [one, other] = (['one', 'other'] as const).map((owner) => {
      const jobs: Job[] = [
        { name: 'replay', description: '', run: async () => ++run[owner] },
        { name: 'beat', description: '', intervalMs: NEVER_MS, everyReplica: true, run: async () => 0 },
      ];
      const runner = startJobs(jobs, { platformStore: open.platformStore, owner, leaseMs: 60_000, log });
      runners.push(runner);
      return runner;
    }) as [JobRunner, JobRunner];
    // Once this job has run, the timer of the other job would have fired as well.
    await Promise.all([one.runNow('beat'), other.runNow('beat')]);
    expect(run).toEqual({ one: 0, other: 0 });
    expect(await one.runNow('replay')).toEqual({ ran: true, count: 1 });
    expect(await other.runNow('replay')).toEqual({ ran: true, count: 1 });
    expect(await one.runNow('replay')).toEqual({ ran: true, count: 2 });
  });

  it('never overlap: a requested round waits for the running one and is a round of its own', async () => {
    let [running, most, rounds] = [0, 0, 0];
    const runner = start(async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return ++rounds;
    });
    const results = await Promise.all(Array.from({ length: 5 }, () => runner.runNow('sweep')));
    expect(results.map(({ ran }) => ran)).toEqual([true, true, true, true, true]);
    expect(new Set(results.map(({ count }) => count)).size).toBe(5);
    expect(most).toBe(1);
  });

  it('that are asked to run soon many times during a round run one more round', async () => {
    const [begun, go, second] = [gate(), gate(), gate()];
    let rounds = 0;
    const runner = start(async () => {
      rounds++;
      if (rounds === 2) second.resolve();
      begun.resolve();
      await go.promise;
      return 0;
    });
    await begun.promise;
    for (let i = 0; i < 10; i++) runner.runSoon('sweep');
    go.resolve();
    await second.promise;
    await runner.runNow('sweep');
    expect(rounds).toBe(3);
  });

  it('that are asked to run soon between rounds do, one round for several requests', async () => {
    let rounds = 0;
    const asked = gate();
    const runner = start(async () => (++rounds === 3 && asked.resolve(), 0));
    await runner.runNow('sweep');
    while (rounds < 2) await new Promise((resolve) => setImmediate(resolve));
    for (let i = 0; i < 10; i++) runner.runSoon('sweep');
    await asked.promise;
    await runner.runNow('sweep');
    expect(rounds).toBe(4);
  });

  it('run in one process only, until it stops and releases the lease', async () => {
    let others = 0;
    const first = start(async () => 7);
    expect(await first.runNow('sweep')).toEqual({ ran: true, count: 7 });
    const second = start(async () => ++others, { owner: 'b' });
    expect(await second.runNow('sweep')).toEqual({ ran: false, count: 0 });
    await first.stop();
    expect((await second.runNow('sweep')).ran).toBe(true);
    expect(await open.platformStore.findOne(LEASES, { _id: 'job:sweep' })).toMatchObject({ owner: 'b', epoch: 2 });
  });

  it('write nothing between rounds while more than half of the lease is left', async () => {
    let [writes, nowMs] = [0, 1_000_000];
    const platformStore: PlatformStore = {
      ...open.platformStore,
      now: async () => nowMs,
      apply: (ops) => (writes++, open.platformStore.apply(ops)),
    };
    const runner = start(async () => 0, { platformStore });
    for (let i = 0; i < 10; i++) await runner.runNow('sweep');
    nowMs += 29_999;
    await runner.runNow('sweep');
    expect(writes).toBe(1);
    nowMs += 1;
    await runner.runNow('sweep');
    expect(writes).toBe(2);
    expect((await open.platformStore.findOne(LEASES, { _id: 'job:sweep' }))!.until).toBe(nowMs + 60_000);
  });

  it('that fail are logged by name and retried; a requested round rejects with the error', async () => {
    let rounds = 0;
    const recovered = gate();
    const runner = start(
      async () => {
        if (++rounds < 3) throw new Error(`broken ${rounds}`);
        recovered.resolve();
        return 0;
      },
      { intervalMs: 1 },
    );
    await recovered.promise;
    await runner.stop();
    expect(logged.map(({ job, error }) => [job, error!.message])).toEqual([
      ['sweep', 'broken 1'],
      ['sweep', 'broken 2'],
    ]);
    const asked = start(async () => {
      throw new Error('broken');
    });
    await expect(asked.runNow('sweep')).rejects.toThrow('broken');
  });

  it('that fail are retried after ever longer pauses, up to 30 s, and at their interval once they succeed', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      const startedAt = Date.now();
      const seconds: number[] = [];
      const job: Job = {
        ...{ name: 'beat', description: '', intervalMs: 1_000, everyReplica: true },
        async run() {
          if (seconds.push((Date.now() - startedAt) / 1_000) <= 6) throw new Error('broken');
          return 0;
        },
      };
      const log = pino({ level: 'silent' });
      const runner = startJobs([job], { platformStore: open.platformStore, owner: 'a', leaseMs: 60_000, log });
      runners.push(runner);
      for (let second = 0; second < 95; second++) {
        await jest.advanceTimersByTimeAsync(1_000);
        // what is wanted soon is not wanted sooner than that
        if (seconds.length < 7) runner.runSoon('beat');
      }
      expect(seconds.map(Math.round)).toEqual([0, 2, 6, 14, 30, 60, 90, 91, 92, 93, 94, 95]);
    } finally {
      jest.useRealTimers();
    }
  });

  it('are aborted when their lease is lost, and may run again later', async () => {
    let aborts = 0;
    const begun = gate();
    const runner = start(
      async (signal) => {
        begun.resolve();
        if (aborts > 0) return 0;
        await aborted(signal);
        return ++aborts;
      },
      { leaseMs: 900 },
    );
    const cutShort = runner.runNow('sweep');
    await begun.promise;
    await open.platformStore.apply([
      update(
        LEASES,
        { _id: 'job:sweep' },
        { set: { owner: 'b', until: Date.now() + 60_000 }, increment: { epoch: 1 } },
      ),
    ]);
    expect(await cutShort).toEqual({ ran: false, count: 1 });
    expect(await runner.runNow('sweep')).toEqual({ ran: false, count: 0 });
    expect(aborts).toBe(1);
    await releaseLease(open.platformStore, { name: 'job:sweep', owner: 'b', epoch: 2, until: 0 });
    expect((await runner.runNow('sweep')).ran).toBe(true);
  });

  it('are aborted and waited for at the stop, and not started again', async () => {
    const begun = gate();
    let finished = false;
    const runner = start(
      async (signal) => {
        begun.resolve();
        await aborted(signal);
        await new Promise((resolve) => setImmediate(resolve));
        finished = true;
        throw signal.reason;
      },
      { intervalMs: 1 },
    );
    await begun.promise;
    await runner.stop();
    expect(finished).toBe(true);
    expect(logged).toEqual([]);
    await expect(runner.runNow('sweep')).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
    expect((await acquireLease(open.platformStore, 'job:sweep', 'b', 1000))!.epoch).toBe(2);
  });
});
