const LOOK_MS = 200;

/**
 * Calls back when the process that started this one has ended. npm runs a script in a shell that hands no signal on: its end is
 * all that the script sees of a SIGTERM to npm.
 */
export function whenParentEnds(notify: () => void): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    notify();
  }, LOOK_MS);
  watch.unref();
}
