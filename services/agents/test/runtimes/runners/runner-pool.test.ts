import { jest } from '@jest/globals';
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { makeLog } from 'platform/core/log.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { HANGING } from '../expression/hanging.ts';
import type { RunResult } from '../../../src/runtimes/runtime.ts';
import { computing, cpuMs, ENDLESS, runners, SUCCEEDED, testPool, type TestPool } from './pool-fixture.ts';
import { cpuTicks, environmentOf, folderOf, isRunning, runnersOf, until, untilStopped } from './runner-processes.ts';

const GREEDY = '[1..50000].{ "a": [1..500] }';

let pool: TestPool;
const startPool = (options?: Parameters<typeof testPool>[0]) => (pool = testPool(options));
afterEach(() => pool.stop());
const evaluate: TestPool['run'] = (...args) => pool.run(...args);

const stepsOf = (result: RunResult): number => ('usage' in result ? (result.usage.steps ?? 0) : 0);

describe('a runner', () => {
  it('starts when a run needs it, and serves the next run', async () => {
    startPool({ size: 2 });
    expect(runners()).toEqual([]);
    expect(await evaluate('1 + 1')).toEqual(SUCCEEDED);
    const first = runners();
    expect(first).toHaveLength(1);
    expect(await evaluate('1 + 1')).toEqual(SUCCEEDED);
    expect(runners()).toEqual(first);
  });

  it('has no environment, and an empty folder that is removed with the pool', async () => {
    startPool();
    await evaluate('1');
    const [pid] = runners() as [number];
    expect(environmentOf(pid).filter((name) => !name.startsWith('NODE_CHANNEL_'))).toEqual([]);
    const folder = folderOf(pid);
    expect(readdirSync(folder)).toEqual([]);
    await pool.stop();
    expect([isRunning(pid), existsSync(folder)]).toEqual([false, false]);
  });

  it('serves agents with other limits of the same size', async () => {
    startPool();
    for (const memoryMb of [64, 16, 40, 64])
      expect(await evaluate('1 + 1', { limits: { memoryMb } })).toEqual(SUCCEEDED);
    expect(runners()).toHaveLength(1);
  });

  it('of another size stays until its idle time is over, so that runs of two sizes do not displace each other', async () => {
    startPool({ idleMs: 600_000 });
    for (const memoryMb of [64, 300, 64, 300]) await evaluate('1', { limits: { memoryMb } });
    const both = runners();
    expect(both).toHaveLength(2);
    for (const memoryMb of [64, 512, 16]) await evaluate('1', { limits: { memoryMb } });
    expect(runners()).toEqual(both);
    await pool.stop();
    startPool({ idleMs: 1 });
    for (const memoryMb of [64, 300]) await evaluate('1', { limits: { memoryMb } });
    await until(() => runners().length === 1);
  });

  it.each(['ended by the system', 'watching'])(
    'dies with its parent, also during an endless evaluation: %s',
    async (how) => {
      startPool();
      const parent = spawn(process.execPath, [join(import.meta.dirname, 'endless-parent.ts'), how], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await new Promise((resolve) => parent.stdout.once('data', resolve));
      const [runner] = runnersOf(parent.pid!) as [number];
      const before = cpuTicks(runner);
      await until(() => cpuTicks(runner) > before + 50);
      parent.kill('SIGKILL');
      await until(() => !isRunning(runner));
    },
  );
});

describe('a runner that is to be replaced', () => {
  const folder = temporaryFolder();
  const [program, gate] = [join(folder.path, 'gated-runner.ts'), join(folder.path, 'open')];
  copyFileSync(join(import.meta.dirname, 'gated-runner.ts'), program);
  beforeEach(() => writeFileSync(gate, ''));
  afterAll(folder.remove);
  const seen = () => runners(program);

  it.each([
    ['has served its number of runs', { recycleAfter: 3 }],
    ['keeps more memory than it may', { recycleAfter: 60, maxGrowthMb: -1_000 }],
  ])('because it %s works on until another one stands ready', async (_why, options) => {
    startPool({ program, ...options });
    await evaluate('1');
    const [worn] = seen();
    // From here on no process becomes ready.
    rmSync(gate);
    for (let run = 0; run < 4; run++) expect(await evaluate('1')).toEqual(SUCCEEDED);
    await until(() => seen().length === 2);
    for (let run = 0; run < 4; run++) expect(await evaluate('1')).toEqual(SUCCEEDED);
    // one that is just becoming the program has no command line
    await until(() => seen().length === 2);
    expect(seen()).toContain(worn);
    writeFileSync(gate, '');
    await until(() => !isRunning(worn!));
    expect(await evaluate('1')).toEqual(SUCCEEDED);
  });

  it('while it evaluates ends after its run', async () => {
    startPool({ program, recycleAfter: 2, maxSize: 2, idleMs: 600_000 });
    await evaluate('1');
    const [worn] = seen();
    rmSync(gate);
    await evaluate('1');
    const started = Promise.withResolvers<void>();
    const last = evaluate('when told', { onStart: started.resolve });
    await started.promise;
    writeFileSync(gate, '');
    expect(await evaluate('1', { organizationId: 'two' })).toEqual(SUCCEEDED);
    expect(isRunning(worn!)).toBe(true);
    writeFileSync(join(folder.path, 'told'), '');
    expect(await last).toEqual(SUCCEEDED);
    await until(() => !isRunning(worn!));
  });

  it('is the same for thousands of runs otherwise', async () => {
    startPool({ program, recycleAfter: 20_000 });
    await evaluate('1');
    const first = seen();
    for (let run = 0; run < 2_100; run++) await evaluate('1');
    expect(seen()).toEqual(first);
  });
});

describe('a run that is stopped', () => {
  it('at its time limit between steps has timed out, with its steps, and its runner stays', async () => {
    startPool();
    const attempt = async () => {
      await evaluate('1');
      await until(() => runners().length === 1);
      const before = runners();
      const result = await evaluate(ENDLESS, { limits: { wallMs: 300 } });
      expect(result).toEqual({ outcome: 'timed_out', usage: { steps: expect.any(Number), cpuMs } });
      await evaluate('1');
      return { before, after: runners(), steps: stepsOf(result) };
    };
    // A runner that does not report in time is killed. A machine that stalls may cause that once, not three times.
    let seen = await attempt();
    for (let left = 2; left > 0 && seen.after.join() !== seen.before.join(); left--) seen = await attempt();
    expect(seen.after).toEqual(seen.before);
    expect(seen.steps).toBeGreaterThan(0);
  });

  it('at its memory limit has failed', async () => {
    startPool();
    expect(await evaluate(GREEDY, { limits: { memoryMb: 16 } })).toEqual({
      outcome: 'failed',
      message: 'The run takes more than 64 MB of memory',
      messages: [],
      usage: { steps: expect.any(Number), cpuMs },
    });
  });

  it('at its limit of steps or output has failed', async () => {
    startPool();
    expect(await evaluate(ENDLESS, { limits: { maxSteps: 1_000 } })).toEqual({
      outcome: 'failed',
      message: 'The expression takes more than 1000 steps',
      messages: [],
      usage: { steps: 1_000, cpuMs },
    });
    expect(await evaluate('$join([1..1000].("0123456789"))', { limits: { outputBytes: 1_000 } })).toMatchObject({
      outcome: 'failed',
      message: 'The output is larger than 1000 bytes',
    });
  });

  it('at its limit of output has failed before the output is complete', async () => {
    startPool();
    // 2 ** 60 numbers as text; a runner that wrote them all would be killed at the time limit.
    const huge = '$reduce([1..60], function($x, $y) { { "a": $x, "b": $x } }, 1)';
    expect(await evaluate(huge, { limits: { outputBytes: 1_000, wallMs: 20_000 } })).toMatchObject({
      outcome: 'failed',
      message: 'The output is larger than 1000 bytes',
    });
  });

  it('because its caller disconnected is cancelled, with the steps last reported', async () => {
    startPool();
    await evaluate('1');
    const caller = new AbortController();
    const run = evaluate(ENDLESS, { signal: caller.signal });
    const pid = await computing();
    caller.abort();
    const result = await run;
    expect(result).toEqual({ outcome: 'cancelled', usage: { steps: expect.any(Number), cpuMs } });
    expect(stepsOf(result) % 10_000).toBe(0);
    expect(stepsOf(result)).toBeGreaterThan(0);
    await until(() => !isRunning(pid));
  });

  it('because its runner was killed is interrupted', async () => {
    startPool();
    await evaluate('1');
    const run = evaluate(ENDLESS);
    process.kill(await computing(), 'SIGKILL');
    expect(await run).toEqual({ outcome: 'interrupted' });
  });

  it('because its runner was killed before it had read it runs in another one', async () => {
    startPool();
    await evaluate('1');
    const [pid] = runners() as [number];
    process.kill(pid, 'SIGSTOP');
    await untilStopped(pid);
    const onStart = () => setImmediate(() => isRunning(pid) && process.kill(pid, 'SIGKILL'));
    expect(await evaluate('1 + 1', { onStart })).toEqual(SUCCEEDED);
    expect(runners()).not.toContain(pid);
  });

  it('is not stopped at its time limit while its process has had no time to read it', async () => {
    startPool();
    await evaluate('1');
    const [pid] = runners() as [number];
    process.kill(pid, 'SIGSTOP');
    await untilStopped(pid);
    const sinceMs = performance.now();
    const run = evaluate('1 + 1', { limits: { wallMs: 100 } });
    await until(() => performance.now() - sinceMs > 1_000);
    process.kill(pid, 'SIGCONT');
    await run;
    expect(runners()).toEqual([pid]);
  });

  it('is not stopped at its time limit because this service had no time to read its result', async () => {
    startPool();
    await evaluate('1');
    const before = runners();
    const run = evaluate('1 + 1', { limits: { wallMs: 100 } });
    await turn();
    const sinceMs = performance.now();
    while (performance.now() - sinceMs < 1_000);
    await run;
    expect(runners()).toEqual(before);
  });

  it('is never started when its caller disconnected before', async () => {
    startPool();
    expect(await evaluate('1', { signal: AbortSignal.abort() })).toEqual({
      outcome: 'cancelled',
      usage: { steps: 0, cpuMs: 0 },
    });
    expect(runners()).toEqual([]);
  });
});

describe('the pool', () => {
  it('works on after every way in which a runner can die', async () => {
    startPool();
    const caller = new AbortController();
    const deaths: (() => Promise<unknown>)[] = [
      () => evaluate(GREEDY, { limits: { memoryMb: 16 } }),
      async () => {
        const run = evaluate(ENDLESS, { signal: caller.signal });
        caller.abort();
        await run;
      },
      async () => process.kill(runners()[0]!, 'SIGKILL'),
    ];
    for (const die of deaths) {
      await die();
      expect(await evaluate('1 + 1')).toEqual(SUCCEEDED);
    }
    await until(() => runners().length === 1);
  });

  it('serves other organizations while a hostile run computes and while it is stopped', async () => {
    startPool({ size: 2 });
    await evaluate('1');
    const caller = new AbortController();
    const hostile = evaluate(HANGING, { signal: caller.signal });
    await computing();
    expect(await evaluate('1 + 1', { organizationId: 'two' })).toEqual(SUCCEEDED);
    caller.abort();
    expect(
      await Promise.all([evaluate('1 + 1', { organizationId: 'two' }), evaluate('1 + 1', { organizationId: 'three' })]),
    ).toEqual([SUCCEEDED, SUCCEEDED]);
    expect(await hostile).toMatchObject({ outcome: 'cancelled' });
  });

  it('rejects runs of the organization that fills its queue, and serves organizations in turn', async () => {
    startPool({ queueLimit: 4 });
    const caller = new AbortController();
    const first = evaluate(ENDLESS, { signal: caller.signal });
    const order: string[] = [];
    const run = (name: string) =>
      evaluate('1', { organizationId: name[0]! }).then(
        () => order.push(name),
        (error: unknown) => error,
      );
    const waiting = ['a1', 'a2', 'a3', 'a4'].map(run);
    expect(pool.queued).toBe(4);
    const rejected = { reason: 'QUEUE_FULL', headers: { 'Retry-After': '1' } };
    expect(await run('a5')).toMatchObject(rejected);
    waiting.push(run('b1'));
    expect(await waiting[3]).toMatchObject(rejected);
    caller.abort();
    await Promise.all([first, ...waiting]);
    expect(order).toEqual(['a1', 'b1', 'a2', 'a3']);
    expect(pool.queued).toBe(0);
  });

  it('removes a waiting run whose caller disconnects', async () => {
    startPool();
    const [running, waiting] = [new AbortController(), new AbortController()];
    const first = evaluate(ENDLESS, { signal: running.signal });
    const second = evaluate('1', { signal: waiting.signal });
    const third = evaluate('1 + 1');
    waiting.abort();
    expect(await second).toEqual({ outcome: 'cancelled', usage: { steps: 0, cpuMs: 0 } });
    expect(pool.queued).toBe(1);
    running.abort();
    expect(await first).toMatchObject({ outcome: 'cancelled' });
    expect(await third).toEqual(SUCCEEDED);
  });

  it('interrupts running and waiting runs when it stops, and accepts no more', async () => {
    startPool();
    const runs = [evaluate(ENDLESS), evaluate('1')];
    await pool.stop();
    expect(await Promise.all(runs)).toEqual([{ outcome: 'interrupted' }, { outcome: 'interrupted' }]);
    expect(runners()).toEqual([]);
    await expect(evaluate('1')).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
  });

  it('logs nothing when it stops while a runner has not read its assignment', async () => {
    const log = makeLog('agents', 'silent');
    const complaints = [jest.spyOn(log, 'warn'), jest.spyOn(log, 'error')];
    startPool({ log });
    await evaluate('1');
    process.kill(runners()[0] as number, 'SIGSTOP');
    let run: Promise<RunResult> | undefined;
    await new Promise<void>((onStart) => (run = evaluate('1', { onStart })));
    await pool.stop();
    expect(await run).toEqual({ outcome: 'interrupted' });
    for (const complaint of complaints) expect(complaint.mock.calls).toEqual([]);
  });
});
