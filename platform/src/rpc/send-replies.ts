import { ServiceError } from '../core/errors.ts';
import type { Call } from './handle.ts';

/**
 * Sends what the handler of a method with a stream of replies yields, one after the other, each when the caller has
 * room for it. A handler that waits for something without watching its signal is left behind when the call ends before.
 * @param replies calls the handler; its signal is aborted, too, when the process stops
 * @param send resolves when the next reply may be sent
 * @param stops the process calls each of these functions when it is about to stop
 * @throws ServiceError CLIENT_GONE; UNAVAILABLE for a repeatable method when the process stops
 */
export async function sendReplies(
  { signal, options, log, path }: Call,
  replies: (signal: AbortSignal) => AsyncIterable<unknown>,
  send: (reply: unknown) => Promise<void>,
  stops: Set<() => void>,
): Promise<void> {
  const aborter = new AbortController();
  let failure: ServiceError | undefined;
  let interrupt = (_error: ServiceError): void => undefined;
  const end = (error: ServiceError, reason: unknown): void => {
    interrupt((failure ??= error));
    aborter.abort(reason);
  };
  const unlessEnded = <T>(work: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      interrupt = reject;
      if (failure) reject(failure);
      work.then(resolve, reject);
    });
  const leave = (): void => end(new ServiceError('CLIENT_GONE'), signal.reason);
  const stop = (): void => end(new ServiceError('UNAVAILABLE', 'The service is about to stop'), undefined);

  signal.addEventListener('abort', leave);
  if (options.repeatable) stops.add(stop);
  if (signal.aborted) leave();
  let iterator: AsyncIterator<unknown> | undefined;
  try {
    iterator = replies(aborter.signal)[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await unlessEnded(iterator.next());
      if (done) return;
      await unlessEnded(send(value));
    }
  } finally {
    signal.removeEventListener('abort', leave);
    stops.delete(stop);
    // It may have to wait for what the handler waits for.
    iterator?.return?.().catch((error: unknown) => log.error({ path, error }, 'failed after the end of its call'));
  }
}
