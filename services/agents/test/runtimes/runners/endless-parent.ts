import { tmpdir } from 'node:os';
import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import { makeLog } from 'platform/core/log.ts';
import { withoutCoreDumps } from '../../../src/runtimes/runners/confinement.ts';
import { startRunner } from '../../../src/runtimes/runners/runner.ts';

// A process whose runner is in an endless evaluation: it prints "running" and waits to be killed. With the argument
// "watching", as on systems that do not end a runner with its service.
const runner = startRunner({
  memoryMb: 64,
  cwd: tmpdir(),
  log: makeLog('agents', 'silent'),
  schedule: fairScheduler(),
  ...(process.argv[2] === 'watching' && { starter: withoutCoreDumps }),
});
const endless = {
  organizationId: 'one',
  runtime: { type: 'expression', source: '($f := function($n) { $f($n + 1) }; $f(0))' },
  argsText: '{}',
  limits: { wallMs: 300_000, maxSteps: Number.MAX_SAFE_INTEGER, memoryMb: 64, outputBytes: 1_000 },
  ...{ trace: false, operations: [], maxToolCalls: 0 },
};
void runner.run(endless, new AbortController().signal, { onStart: () => void process.stdout.write('running\n') });
