import { readdirSync, readFileSync } from 'node:fs';

/** SIGSTOP to a process; resolves when all its threads stand still: on a busy machine they work on for a while. */
export async function pause(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  while (!readdirSync(`/proc/${pid}/task`).every((thread) => standsStill(`/proc/${pid}/task/${thread}`))) await new Promise(setImmediate);
}

function standsStill(thread: string): boolean {
  try {
    return /\) [TtZX] [^)]*$/.test(readFileSync(`${thread}/stat`, 'utf8'));
  } catch {
    // it has ended
    return true;
  }
}
