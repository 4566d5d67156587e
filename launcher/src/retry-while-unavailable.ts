import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from 'platform/core/errors.ts';

const ATTEMPTS = 10;
const PAUSE_MS = 1_000;

/**
 * Runs idempotent work, and again after UNAVAILABLE or OUTCOME_UNKNOWN, up to ten times: an engine that is briefly busy
 * must not end the start.
 */
export async function retryWhileUnavailable<T>(work: () => Promise<T>, print: (line: string) => void): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isRetryable =
        error instanceof ServiceError && (error.reason === 'UNAVAILABLE' || error.reason === 'OUTCOME_UNKNOWN');
      if (!isRetryable || attempt === ATTEMPTS) throw error;
      print(`  ${error.message}; retrying`);
      await delay(PAUSE_MS);
    }
  }
}
