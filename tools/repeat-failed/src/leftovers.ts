import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** A variable in the environment of a suite, which the processes that it starts inherit. */
export const MARK = 'CI_SUITE';
const PAUSE_MS = 20;

/**
 * Ends what processes of a suite have left running, whoever their parent is now. A process that was started without the
 * mark (a runner, a service below the launcher) ends by itself when the one that started it is gone.
 */
export async function endLeftovers(mark: string): Promise<void> {
  for (;;) {
    const left = marked(mark);
    if (left.length === 0) return;
    for (const pid of left) kill(pid);
    await delay(PAUSE_MS);
  }
}

function marked(mark: string): number[] {
  const pids = readdirSync('/proc').map(Number).filter(Boolean);
  return pids.filter((pid) => environmentOf(pid).includes(`${MARK}=${mark}`));
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return []; // it has ended, or is somebody else's
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
