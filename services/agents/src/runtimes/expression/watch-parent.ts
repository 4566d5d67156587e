import { workerData } from 'node:worker_threads';

const POLL_MS = 200;

// The thread beside an evaluation: an evaluation that never ends cannot hear that the service is gone, and would run for ever.
setInterval(() => {
  if (process.ppid !== Number(workerData)) process.kill(process.pid, 'SIGKILL');
}, POLL_MS);
