import { readFileSync } from 'node:fs';
import { childrenOf } from '../../test/support/process-tree.ts';

const TICKS_PER_SECOND = 100;
const microseconds = (ticks: number): number => (ticks / TICKS_PER_SECOND) * 1e6;

/** CPU time in microseconds (proc(5), stat): of the process, and of its descendants that have ended. */
function timesOf(pid: number): { own: number; ended: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') as string[];
  const [user, system, endedUser, endedSystem] = fields.slice(11, 15).map(Number) as [number, number, number, number];
  return { own: microseconds(user + system), ended: microseconds(endedUser + endedSystem) };
}

/** CPU time that a process has used so far, in microseconds. */
export const cpuOf = (pid: number): number => timesOf(pid).own;

/** Microseconds so far in which the main thread of a process ran, and in which it waited for a core. */
export interface ThreadTimes {
  ran: number;
  waited: number;
}

/** The first two fields of schedstat (Documentation/scheduler/sched-stats of Linux). */
export function mainThreadOf(pid: number): ThreadTimes {
  const [ran, waited] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ').map(Number);
  return { ran: (ran as number) / 1_000, waited: (waited as number) / 1_000 };
}

/**
 * CPU time that all descendants of a process have used so far, in microseconds: those that have ended, which the
 * operating system adds to their parent, and those that run.
 */
export function descendantsCpuOf(pid: number): number {
  for (;;) {
    const before = timesOf(pid).ended;
    let running = 0;
    for (const child of childrenOf(pid)) running += treeCpuOf(child);
    // one that ended meanwhile may be counted twice or not at all
    if (timesOf(pid).ended === before) return before + running;
  }
}

/** A process that has ended counts as 0 here: it is in its parent's sum. */
function treeCpuOf(pid: number): number {
  try {
    return cpuOf(pid) + descendantsCpuOf(pid);
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

/** Proportional set size of a process and all its descendants in MB (proc(5), smaps_rollup); 0 if it has ended. */
export function treePssOf(pid: number): number {
  try {
    const children = childrenOf(pid).map(treePssOf);
    return children.reduce((sum, mb) => sum + mb, pssOf(pid));
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

/** Proportional set size in MB; 0 for a process that has ended and that its parent has not noticed yet. */
export const pssOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024;

const isGone = (error: unknown): boolean => ['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '');
