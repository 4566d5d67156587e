/**
 * Gives those who read the same at the same time one read: all that ask within one macrotask and the microtasks after
 * it. All of their requests had arrived before it began, so the read begins after each of them, and none gets what is
 * older than its request. Nothing is remembered for the next macrotask. Nobody may change what was read.
 * @returns reads, or joins the read that this key has already
 */
export function sharedInTurn<T>(): (key: string, read: () => Promise<T>) => Promise<T> {
  const reads = new Map<string, Promise<T>>();
  // Node runs it when no microtask is left.
  const forget = (): void => reads.clear();
  return (key, read) => {
    let shared = reads.get(key);
    if (shared === undefined) {
      if (reads.size === 0) process.nextTick(forget);
      shared = read();
      reads.set(key, shared);
    }
    return shared;
  };
}
