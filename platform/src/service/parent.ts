const CHECK_INTERVAL_MS = 200;

/**
 * Calls `notify` when the process that started this one has ended. npm runs a script in a shell that does not forward
 * signals: after a SIGTERM to npm, all that the script can notice is the end of that shell.
 */
export function whenParentEnds(notify: () => void): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    notify();
  }, CHECK_INTERVAL_MS);
  watch.unref();
}
