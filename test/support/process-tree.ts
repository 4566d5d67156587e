import { childrenOf } from './stack.ts';

/** Process ids of the children, their children, and so on. */
export const descendantsOf = (pid: number): number[] =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
