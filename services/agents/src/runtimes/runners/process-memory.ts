import { readFileSync } from 'node:fs';

/**
 * Memory of a process that belongs to no file, in MiB: V8's heap and all that lies outside of it (proc(5), status,
 * RssAnon). 0 for a process that has ended, and where the system does not tell, as outside Linux.
 */
export function memoryMbOf(pid: number): number {
  try {
    const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    return Number(kib ?? 0) / 1024;
  } catch {
    return 0;
  }
}
