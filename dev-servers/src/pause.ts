import { readdirSync } from 'node:fs';
import { stateOf } from './process-state.ts';

/** Stopped, by a signal or a tracer, or ended. */
const STANDING = ['T', 't', 'Z', 'X', undefined];

/** SIGSTOP to a process; resolves when all its threads stand still: on a busy machine they work on for a while. */
export async function pause(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  while (!readdirSync(`/proc/${pid}/task`).every((thread) => STANDING.includes(stateOf(pid, thread))))
    await new Promise(setImmediate);
}
