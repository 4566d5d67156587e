/** Resolves when all are done; when some fail, rejects with the first fault once the others are done, too: nothing goes on behind the caller's back. */
export async function allDone(works: readonly Promise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(works)) if (outcome.status === 'rejected') throw outcome.reason;
}
