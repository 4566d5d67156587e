import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from 'platform/core/errors.ts';

const ROUNDS = 10;
const PAUSE_MS = 1_000;

interface Patience {
  say(line: string): void;
  isStopping(): boolean;
}

/** Runs what may be repeated, done or not: an engine that is busy for a moment is no reason to end the start. */
export async function retryWhileUnavailable<T>(work: () => Promise<T>, { say, isStopping }: Patience): Promise<T> {
  for (let round = 1; ; round++) {
    try {
      return await work();
    } catch (error) {
      const again =
        error instanceof ServiceError && (error.reason === 'UNAVAILABLE' || error.reason === 'OUTCOME_UNKNOWN');
      if (!again || round === ROUNDS || isStopping()) throw error;
      say(`  ${error.message}; asking again`);
      await delay(PAUSE_MS);
    }
  }
}
