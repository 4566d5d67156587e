import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getPriority } from 'node:os';
import type { RunResult } from '../../../src/runtimes/runtime.ts';
import { computing, ENDLESS, runners, testPool, type TestPool } from './pool-fixture.ts';
import { cpuTicks, until } from './runner-processes.ts';

const REPOSITORY = join(import.meta.dirname, '../../../../..');

/** The soft and the hard limit in the text of `/proc/<pid>/limits`. */
const coreLimit = (limits: string) => /^Max core file size +(\S+) +(\S+)/m.exec(limits)?.slice(1, 3);

const processGroupOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[2];

const cpuMsOf = (result: RunResult): number => ('usage' in result ? (result.usage.cpuMs ?? 0) : 0);

describe('a runner', () => {
  let pool: TestPool;
  beforeEach(() => {
    pool = testPool();
  });
  afterEach(() => pool.stop());

  it('is started with exactly these restrictions', async () => {
    await pool.run('1', { limits: { memoryMb: 100 } });
    const [pid] = runners() as [number];
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(1, -1);
    expect(command.map((word) => word.replaceAll(`${REPOSITORY}/`, ''))).toEqual([
      '--max-old-space-size=172',
      '--max-semi-space-size=4',
      '--v8-pool-size=1',
      '--disallow-code-generation-from-strings',
      '--disable-proto=throw',
      '--permission',
      '--allow-fs-read=services/agents/src/runtimes/runners/load-sources.js',
      '--allow-fs-read=services/agents/src/runtimes/runners/watch-parent.js',
      '--allow-fs-read=services/agents/package.json',
      '--allow-fs-read=node_modules/jsonata/*',
      '--allow-fs-read=node_modules/re2js/*',
      '--allow-fs-read=node_modules/@eslint-community/regexpp/*',
      '--allow-fs-read=node_modules/quickjs-emscripten-core/*',
      '--allow-fs-read=node_modules/@jitl/quickjs-ffi-types/*',
      '--allow-fs-read=node_modules/@jitl/quickjs-wasmfile-release-sync/*',
      '--allow-fs-read=platform/package.json',
      '--allow-fs-read=node_modules/platform',
      '--import=file://services/agents/src/runtimes/runners/load-sources.js',
      'services/agents/src/runtimes/runners/runner-child.ts',
    ]);
  });

  it('works on when a terminal or a supervisor signals all processes of the service', async () => {
    await pool.run('1');
    const [pid] = runners() as [number];
    expect(processGroupOf(pid)).not.toBe(processGroupOf(process.pid));
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.kill(pid, signal);
    expect(await pool.run('1 + 1')).toMatchObject({ outcome: 'succeeded' });
    expect(runners()).toEqual([pid]);
  });

  it('leaves no core dump when it dies', async () => {
    await pool.run('1');
    expect(coreLimit(readFileSync(`/proc/${runners()[0]}/limits`, 'utf8'))).toEqual(['0', '0']);
  });

  it('yields to the service when both compute', async () => {
    await pool.run('1');
    expect(getPriority(runners()[0])).toBe(Math.min(19, getPriority() + 10));
  });
});

describe('the processor time of a run', () => {
  let pool: TestPool;
  beforeEach(() => {
    pool = testPool();
  });
  afterEach(() => pool.stop());
  const TICK_MS = 10;

  it('is that of its process between start and end, without the start of the process', async () => {
    const ofFirst = cpuMsOf(await pool.run('1'));
    const [pid] = runners() as [number];
    const before = cpuTicks(pid) * TICK_MS;
    expect(ofFirst).toBeLessThan(before);
    const cpuMs = cpuMsOf(await pool.run(ENDLESS, { limits: { maxSteps: 300_000 } }));
    const after = cpuTicks(pid) * TICK_MS;
    expect(cpuMs).toBeGreaterThanOrEqual(after - before - 2 * TICK_MS);
    // It also has the time that the system spends for the process.
    expect(cpuMs).toBeLessThan(3 * (after - before));
  });

  it('is known of a run that is killed', async () => {
    await pool.run('1');
    const caller = new AbortController();
    const run = pool.run(ENDLESS, { signal: caller.signal });
    await computing();
    caller.abort();
    expect(cpuMsOf(await run)).toBeGreaterThanOrEqual(50 * TICK_MS - 2 * TICK_MS);
  });

  it('is known as of a quarter second before, of a run whose process dies', async () => {
    await pool.run('1');
    const run = pool.run(ENDLESS);
    const pid = await computing();
    const passed = performance.now() + 300;
    await until(() => performance.now() > passed);
    // So ends a process that is out of memory.
    process.kill(pid, 'SIGABRT');
    expect(await run).toMatchObject({ outcome: 'failed', message: expect.stringContaining('memory') });
    expect(cpuMsOf(await run)).toBeGreaterThan(100);
  });
});
