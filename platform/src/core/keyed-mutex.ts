/**
 * Runs work of the same organization for the same key one after the other, in the order of the calls; all other work
 * runs concurrently. So no organization waits for another one, also not where it names something of the other.
 */
export type KeyedMutex = <T>(organizationId: string, key: string, work: () => Promise<T>) => Promise<T>;

/** Useful for writers of one document in one process: unordered, all but one would conflict at every attempt. */
export function keyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return async (organizationId, keyInIt, work) => {
    const key = `${organizationId} ${keyInIt}`;
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
