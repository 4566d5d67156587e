import { readFileSync } from 'node:fs';

/** State letter of a process or of one of its threads (proc(5)); undefined if it does not exist. */
export function stateOf(pid: number, thread?: string): string | undefined {
  try {
    // the state follows the name, which may contain any character
    return /\) (.) [^)]*$/.exec(
      readFileSync(`/proc/${pid}/${thread === undefined ? '' : `task/${thread}/`}stat`, 'utf8'),
    )?.[1];
  } catch {
    return undefined;
  }
}

/** True if no process has this id, or only a zombie. */
export const isGone = (pid: number): boolean => [undefined, 'Z', 'X'].includes(stateOf(pid));
