import { readdirSync } from 'node:fs';
import { stateOf } from './process-state.ts';

/** States of a thread that does not run: stopped by a signal or a tracer, or ended. */
const STOPPED = ['T', 't', 'Z', 'X', undefined];

/** Sends SIGSTOP and resolves when all threads have stopped, which takes a while on a busy machine. */
export async function pause(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  while (!readdirSync(`/proc/${pid}/task`).every((thread) => STOPPED.includes(stateOf(pid, thread))))
    await new Promise(setImmediate);
}
