import { DuplicateKeyError } from './store.ts';

/**
 * Resolves to what `find` finds; when there is nothing, to `first` once `insert` has stored it. Of several concurrent
 * callers one inserts, and all get the same. `insert` throws DuplicateKeyError to all but one.
 */
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
