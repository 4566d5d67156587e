import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';

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
export const openCpuClock: (pid: number) => CpuClock = hasThreadClocks()
  ? openThreadClocks
  : () => ({ nowMs: () => performance.now(), close: () => undefined });

/** A kernel that does not count shows zeros. */
function hasThreadClocks(): boolean {
  return existsSync('/proc/self/schedstat') && !readFileSync('/proc/self/schedstat', 'utf8').startsWith('0 ');
}

/**
 * A file is opened once for each thread, because it is read once or twice for every run. Whether threads have
 * come is looked at no more often than this, because it costs more than to read all files. One that has ended is
 * noticed at once.
 */
const LOOK_FOR_THREADS_MS = 5;

function openThreadClocks(pid: number): CpuClock {
  const folder = `/proc/${pid}/task`;
  const files = new Map<string, number>();
  const bytes = Buffer.alloc(128);
  let lookAtMs = 0;

  /** Undefined when the thread has ended since they were listed: another one may get its number. */
  function threadMs(thread: string, file: number): number | undefined {
    try {
      const length = readSync(file, bytes, 0, bytes.length, 0);
      return Number.parseInt(bytes.toString('latin1', 0, length)) / 1e6;
    } catch {
      forget(thread, file);
      return undefined;
    }
  }

  function forget(thread: string, file: number): void {
    closeSync(file);
    files.delete(thread);
  }

  /** A folder has a link from each folder in it, beside its two own ones. */
  function isListed(): boolean {
    try {
      return statSync(folder).nlink === files.size + 2;
    } catch {
      return false;
    }
  }

  function list(): void {
    let present: string[] = [];
    try {
      present = readdirSync(folder);
    } catch {
      // The process has ended.
    }
    for (const [thread, file] of files) if (!present.includes(thread)) forget(thread, file);
    for (const thread of present) {
      if (files.has(thread)) continue;
      try {
        files.set(thread, openSync(join(folder, thread, 'schedstat'), 'r'));
      } catch {
        // The thread has ended since they were listed.
      }
    }
  }

  return {
    nowMs() {
      const now = performance.now();
      if (now >= lookAtMs) {
        lookAtMs = now + LOOK_FOR_THREADS_MS;
        if (!isListed()) list();
      }
      let sumMs = 0;
      let isComplete = true;
      for (const [thread, file] of files) {
        const ms = threadMs(thread, file);
        if (ms === undefined) isComplete = false;
        else sumMs += ms;
      }
      if (isComplete) return sumMs;
      list();
      return files.entries().reduce((sum, [thread, file]) => sum + (threadMs(thread, file) ?? 0), 0);
    },
    close() {
      for (const [thread, file] of files) forget(thread, file);
    },
  };
}
