/** Rejects with `late()` when the work takes longer, which goes on nevertheless: no driver can be interrupted. */
export async function withTimeout<T>(
  work: Promise<T>,
  timeoutMs: number,
  late: () => Error = () => new Error(`no answer within ${timeoutMs} ms`),
): Promise<T> {
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => over.reject(late()), timeoutMs);
  try {
    return await Promise.race([work, over.promise]);
  } finally {
    clearTimeout(timer);
  }
}
