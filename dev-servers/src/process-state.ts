import { readFileSync } from 'node:fs';

/** The letter of proc(5) for a process, or for one of its threads; undefined when there is none. */
export function stateOf(pid: number, thread?: string): string | undefined {
  try {
    // it stands behind the name, which may hold anything
    return /\) (.) [^)]*$/.exec(
      readFileSync(`/proc/${pid}/${thread === undefined ? '' : `task/${thread}/`}stat`, 'utf8'),
    )?.[1];
  } catch {
    return undefined;
  }
}

/** No process has this id, or only a zombie whose end nobody has asked for. */
export const isGone = (pid: number): boolean => [undefined, 'Z', 'X'].includes(stateOf(pid));
