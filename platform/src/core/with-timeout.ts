/** Rejects with `timeoutError()` when the work takes longer than `timeoutMs`. The work itself is not cancelled. */
export async function withTimeout<T>(
  work: Promise<T>,
  timeoutMs: number,
  timeoutError: () => Error = () => new Error(`no answer within ${timeoutMs} ms`),
): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(timeoutError()), timeoutMs);
  try {
    return await Promise.race([work, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
