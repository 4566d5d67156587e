/** Rejects with the reason of `signal` when that aborts before the work ends. The work itself is not cancelled. */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason as Error);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
