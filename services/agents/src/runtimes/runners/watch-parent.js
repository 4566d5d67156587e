import { workerData } from 'node:worker_threads';

const POLL_MS = 200;

// A thread of its own, because an evaluation can block the main thread for ever: the runner would then not notice that
// the service has died, and would outlive it. `workerData` is the process id of the service.
setInterval(() => {
  if (process.ppid !== Number(workerData)) process.kill(process.pid, 'SIGKILL');
}, POLL_MS);
