import { join } from 'node:path';
import { NO_REPORTS } from './lies.ts';
import { cpuMs, runners, SUCCEEDED, testPool, type TestPool } from './pool-fixture.ts';
import { isRunning, until } from './runner-processes.ts';

const PROGRAM = join(import.meta.dirname, 'lying-runner.ts');

describe('a runner that lies', () => {
  let pool: TestPool;
  beforeAll(() => {
    pool = testPool({ program: PROGRAM });
  });
  afterAll(() => pool.stop());
  const runner = () => runners(PROGRAM)[0] as number;

  it.each([
    'stepsNegative',
    'stepsReportedFalling',
    'outputThatEndsTheReply',
    'aboutAnother',
    ...Object.keys(NO_REPORTS),
  ])('is killed, its run interrupted, and the next run is evaluated: %s', async (lie) => {
    expect(await pool.run('truth')).toEqual(SUCCEEDED);
    const liar = runner();
    expect(await pool.run(lie)).toEqual({ outcome: 'interrupted' });
    await until(() => !isRunning(liar));
    expect(await pool.run('truth')).toEqual(SUCCEEDED);
  });

  it('is killed at the time limit of a run that it never ends', async () => {
    expect(await pool.run('truth')).toEqual(SUCCEEDED);
    const endless = runner();
    const limits = { wallMs: 100 };
    expect(await pool.run('neverEnding', { limits })).toEqual({ outcome: 'timed_out', usage: { steps: 0, cpuMs } });
    await until(() => !isRunning(endless));
    expect(await pool.run('truth')).toEqual(SUCCEEDED);
  });

  it('is killed when it takes memory that V8 does not limit', async () => {
    expect(await pool.run('truth')).toEqual(SUCCEEDED);
    const greedy = runner();
    expect(await pool.run('greedy', { limits: { wallMs: 20_000 } })).toEqual({
      outcome: 'failed',
      message: 'The run takes more than 64 MB of memory',
      messages: [],
      usage: { steps: 0, cpuMs },
    });
    await until(() => !isRunning(greedy));
    expect(await pool.run('truth')).toEqual(SUCCEEDED);
  });

  it('is killed for a report after the end of its run', async () => {
    expect(await pool.run('truth')).toEqual(SUCCEEDED);
    const liar = runner();
    expect(await pool.run('reportAfterTheEnd')).toEqual(SUCCEEDED);
    await until(() => !isRunning(liar));
    expect(await pool.run('truth')).toEqual(SUCCEEDED);
  });
});
