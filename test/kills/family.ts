import { readFileSync } from 'node:fs';
import { childrenOf } from '../stack.ts';

/** Process ids of the children, their children, and so on. */
export const descendantsOf = (pid: number): number[] => childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);

/** True when the process has ended, be it that nobody has asked for its end yet. */
export function isGone(pid: number): boolean {
  try {
    // the state stands behind the name, which may hold anything
    return /\) [ZX] [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}
