import { existsSync } from 'node:fs';

/** Programs that start another one, in the same process, with a limit of 0 bytes for core dumps. */
const STARTERS = [
  ['/usr/bin/prlimit', '--core=0', '--'],
  // A shell adds variables to the environment; this one is all that a runner has.
  ['/bin/sh', '-c', 'ulimit -c 0 && exec /usr/bin/env -i "$@"', 'sh', 'NODE_CHANNEL_FD=3'],
] as const;

/**
 * The command line of a process that leaves no core dump when it dies: that would hold the memory of the realms of
 * several organizations. Where there is no program that sets the limit, as outside Linux, the command line as it is.
 * @param command a program and its arguments
 * @param exists whether there is such a program
 */
export function withoutCoreDumps(
  command: [string, ...string[]],
  exists: (program: string) => boolean = (program) => process.platform === 'linux' && existsSync(program),
): [string, ...string[]] {
  const starter = STARTERS.find(([program]) => exists(program));
  return starter ? [...starter, ...command] : command;
}
