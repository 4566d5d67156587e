import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../core/errors.ts';
import { DuplicateKeyError, ExpectationFailedError } from './store.ts';

const ROUNDS = 16;
const PATIENCE_MS = 2_000;
const PAUSE_MAX_MS = 64;

/**
 * Runs a round of read, check and write anew when its batch met a change by another. None begins for a caller that is gone:
 * it may have waited its turn behind others for longer than anybody waits for an answer.
 * @throws ServiceError CONFLICT when no round of 16, and of two seconds, got through; CLIENT_GONE
 */
export async function retryOnConflict<T>(signal: AbortSignal, round: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (let tried = 1; ; tried++) {
    requireCaller(signal);
    try {
      return await round();
    } catch (cause) {
      if (!(cause instanceof ExpectationFailedError || cause instanceof DuplicateKeyError)) throw cause;
      if (tried >= ROUNDS && performance.now() > giveUpAt) throw new ServiceError('CONFLICT', undefined, { cause });
      // a replica that has more to write is a step ahead, and would win every round
      if (tried > 1) await delay(Math.random() * Math.min(PAUSE_MAX_MS, 2 ** tried));
    }
  }
}

/** @throws ServiceError CLIENT_GONE */
export function requireCaller(signal: AbortSignal): void {
  if (signal.aborted) throw new ServiceError('CLIENT_GONE');
}
