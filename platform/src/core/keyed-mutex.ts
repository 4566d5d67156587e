/** Runs work for one key at a time, in the order of the calls; work for different keys runs at once. */
export type KeyedMutex = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/** For writers of one document in one process: without an order, all but one would lose every round. */
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
