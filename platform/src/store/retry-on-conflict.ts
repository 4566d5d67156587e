import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../core/errors.ts';
import { DuplicateKeyError, ExpectationFailedError } from './store.ts';

const MIN_ATTEMPTS = 16;
const MIN_DURATION_MS = 2_000;
const PAUSE_MAX_MS = 64;

/**
 * Repeats `attempt` (read, check and write) while its batch conflicts with a concurrent change. No attempt starts after
 * `signal` aborted: the caller is gone, perhaps while this request waited behind others.
 * @param pause given in tests
 * @throws ServiceError CONFLICT when neither 16 attempts nor two seconds were enough; CLIENT_GONE
 */
export async function retryOnConflict<T>(
  signal: AbortSignal,
  attempt: () => Promise<T>,
  pause: (ms: number) => Promise<unknown> = delay,
): Promise<T> {
  const giveUpAt = performance.now() + MIN_DURATION_MS;
  for (let attempts = 1; ; attempts++) {
    requireWaitingCaller(signal);
    try {
      return await attempt();
    } catch (cause) {
      if (!(cause instanceof ExpectationFailedError || cause instanceof DuplicateKeyError)) throw cause;
      if (attempts >= MIN_ATTEMPTS && performance.now() > giveUpAt)
        throw new ServiceError('CONFLICT', undefined, { cause });
      // Without a random pause, a replica with many writes is always a step ahead and wins every time.
      if (attempts > 1) await pause(Math.random() * Math.min(PAUSE_MAX_MS, 2 ** attempts));
    }
  }
}

/** @throws ServiceError CLIENT_GONE when the caller is gone */
export function requireWaitingCaller(signal: AbortSignal): void {
  if (signal.aborted) throw new ServiceError('CLIENT_GONE');
}
