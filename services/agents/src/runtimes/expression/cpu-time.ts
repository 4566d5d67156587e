import { closeSync, existsSync, openSync, readdirSync, readSync } from 'node:fs';

export interface CpuClock {
  /**
   * Processor time that all threads of the process have used so far, in milliseconds; only differences mean anything.
   * Less when threads have ended, and 0 when the process has.
   */
  nowMs(): number;
  close(): void;
}

/**
 * Linux counts processor time in nanoseconds for each thread (proc(5), schedstat). Where it does not, this is the time
 * that has passed, which is the most that the one busy thread of a runner can have used.
 */
export const openCpuClock: (pid: number) => CpuClock = existsSync('/proc/self/schedstat')
  ? openThreadClocks
  : () => ({ nowMs: () => performance.now(), close: () => undefined });

/** A file is opened once for each thread, because it is read at the start and the end of every run. */
function openThreadClocks(pid: number): CpuClock {
  const files = new Map<string, number>();
  const bytes = Buffer.alloc(128);

  function threadMs(thread: string): number {
    try {
      let file = files.get(thread);
      if (file === undefined) files.set(thread, (file = openSync(`/proc/${pid}/task/${thread}/schedstat`, 'r')));
      const length = readSync(file, bytes, 0, bytes.length, 0);
      return Number.parseInt(bytes.toString('latin1', 0, length)) / 1e6;
    } catch {
      // The thread has ended since they were listed. Another one may get its number.
      forget(thread);
      return 0;
    }
  }

  function forget(thread: string): void {
    const file = files.get(thread);
    if (file !== undefined) closeSync(file);
    files.delete(thread);
  }

  function threads(): string[] {
    try {
      return readdirSync(`/proc/${pid}/task`);
    } catch {
      return [];
    }
  }

  return {
    nowMs() {
      const present = threads();
      if (files.size > present.length) for (const thread of files.keys()) if (!present.includes(thread)) forget(thread);
      return present.reduce((sumMs, thread) => sumMs + threadMs(thread), 0);
    },
    close() {
      for (const thread of files.keys()) forget(thread);
    },
  };
}
