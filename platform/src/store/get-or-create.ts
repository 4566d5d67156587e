import { DuplicateKeyError } from './store.ts';

/** What `find` finds, or else `first`, put there by `insert`; of several who do so at once all get the same. */
export async function getOrCreate<T>(
  find: () => Promise<T | undefined>,
  first: T,
  insert: (first: T) => Promise<void>,
): Promise<T> {
  const found = await find();
  if (found) return found;
  try {
    await insert(first);
    return first;
  } catch (error) {
    const theirs = error instanceof DuplicateKeyError ? await find() : undefined;
    if (theirs) return theirs;
    throw error;
  }
}
