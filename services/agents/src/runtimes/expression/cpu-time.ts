import { existsSync, readdirSync, readFileSync } from 'node:fs';

/**
 * Processor time that all threads of a process have used so far, in milliseconds; only differences mean anything.
 * Linux counts it in nanoseconds (proc(5), schedstat). Where it does not, this is the time that has passed, which is
 * the most that the one busy thread of a runner can have used. 0 for a process that has ended.
 */
export const cpuMsOf: (pid: number) => number = existsSync('/proc/self/schedstat')
  ? (pid) => threadsOf(pid).reduce((sumMs, thread) => sumMs + threadMs(pid, thread), 0)
  : () => performance.now();

// The process and its threads may end between any two of these reads.
function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function threadMs(pid: number, thread: string): number {
  try {
    return Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1')) / 1e6;
  } catch {
    return 0;
  }
}
