import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import { makeLog } from 'platform/core/log.ts';
import { startRunnerPool } from '../../../src/runtimes/runners/runner-pool.ts';

// A process whose runner is in an endless evaluation: it prints "running" and waits to be killed.
const pool = startRunnerPool({
  size: 1,
  queueLimit: 1,
  recycleAfter: 10,
  log: makeLog('agents', 'silent'),
  schedule: fairScheduler(),
});
const limits = { wallMs: 300_000, maxSteps: Number.MAX_SAFE_INTEGER, memoryMb: 64, outputBytes: 1_000 };
const evaluate = (source: string) =>
  pool.evaluate({
    runtime: { type: 'expression', source },
    argsText: '{}',
    limits,
    ...{ trace: false, tools: undefined },
    organizationId: 'one',
    signal: new AbortController().signal,
    onStart: () => undefined,
  });
await evaluate('1');
void evaluate('($f := function($n) { $f($n + 1) }; $f(0))');
process.stdout.write('running\n');
