/** Processor time that a synchronous function takes, in milliseconds. */
export function cpuMsOf(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The least of several runs: what other work on the machine adds is left out. */
export const leastCpuMsOf = (run: () => unknown, rounds = 7): number =>
  Math.min(...Array.from({ length: rounds }, () => cpuMsOf(run)));
