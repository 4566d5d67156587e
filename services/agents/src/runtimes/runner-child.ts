import { Worker } from 'node:worker_threads';
import type { RunnerTask } from './evaluation.ts';
import { evaluateExpression } from './expression.ts';

/** A runner: evaluates one task at a time for its parent, and is killed where it does not end. It has no environment and no secret. */
const steps = new Int32Array(new SharedArrayBuffer(4));
new Worker(new URL('./watch-parent.ts', import.meta.url), { workerData: { steps, parentPid: process.ppid }, execArgv: [] }).on('error', () => process.exit(1));

process.on('message', (task: RunnerTask) => {
  Atomics.store(steps, 0, 0);
  void evaluateExpression(task, (count) => Atomics.store(steps, 0, count)).then((answer) => process.send?.(answer));
});
process.on('disconnect', () => process.exit(0));
process.send?.('ready');
