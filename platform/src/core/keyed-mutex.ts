/**
 * Runs work for the same key one after the other, in the order of the calls; work for different keys runs
 * concurrently.
 */
export type KeyedMutex = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/** Useful for writers of one document in one process: unordered, all but one would conflict at every attempt. */
export function keyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key);
    const mine = before === undefined ? work() : before.then(work, work);
    last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (last.get(key) === mine) last.delete(key);
    }
  };
}
