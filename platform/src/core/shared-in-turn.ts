export type SharedInTurn<T> = (organizationId: string, key: readonly unknown[], read: () => Promise<T>) => Promise<T>;

/**
 * Gives those who read the same at the same time one read: all that ask within one macrotask and the microtasks after
 * it. All of their requests had arrived before it began, so the read begins after each of them, and none gets what is
 * older than its request. Nothing is remembered for the next macrotask. Nobody may change what was read.
 * @returns reads, or joins the read of the same organization and key, which is compared as JSON: all that decides what
 * is read
 */
export function sharedInTurn<T>(): SharedInTurn<T> {
  // A new one for each turn, because V8 may keep what a Map contained for long (ADR 24).
  let reads = new Map<string, Promise<T>>();
  // Node runs it before the next macrotask.
  const forget = (): void => void (reads = new Map());
  return (organizationId, key, read) => {
    const text = JSON.stringify([organizationId, key]);
    let shared = reads.get(text);
    if (shared === undefined) {
      if (reads.size === 0) process.nextTick(forget);
      shared = read();
      reads.set(text, shared);
    }
    return shared;
  };
}
