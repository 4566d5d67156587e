import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

const INTERVAL_MS = 100;
/** Pipe to the parent, after stdin, stdout, stderr and IPC. */
const STEPS_FD = 4;

const { steps, parentPid } = workerData as { steps: Int32Array; parentPid: number };

// A thread of its own: while an expression spins, the main thread hears of nothing.
setInterval(() => {
  if (process.ppid !== parentPid) process.kill(process.pid, 'SIGKILL');
  try {
    writeSync(STEPS_FD, `${Atomics.load(steps, 0)}\n`);
  } catch (error) {
    // a full pipe loses one report; a closed one has no reader left
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') process.kill(process.pid, 'SIGKILL');
  }
}, INTERVAL_MS);
