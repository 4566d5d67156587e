import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../core/errors.ts';
import { DuplicateKey, ExpectationFailed } from './store.ts';

const ROUNDS = 16;
const PATIENCE_MS = 2_000;
const PAUSE_MAX_MS = 64;

/** What `find` finds, or else `first`, put there by `insert`; of several who do so at once all get the same. */
export async function foundOrMade<T>(
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
    const theirs = error instanceof DuplicateKey ? await find() : undefined;
    if (theirs) return theirs;
    throw error;
  }
}

/**
 * Runs a round of read, check and write anew when its batch met a change by another. None begins for a caller that is gone:
 * it may have waited its turn behind others for longer than anybody waits for an answer.
 * @throws ServiceError CONFLICT when no round of 16, and of two seconds, got through; CLIENT_GONE
 */
export async function persistently<T>(signal: AbortSignal, round: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (let tried = 1; ; tried++) {
    requireCaller(signal);
    try {
      return await round();
    } catch (cause) {
      if (!(cause instanceof ExpectationFailed || cause instanceof DuplicateKey)) throw cause;
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

/** Lets the writers of one document in this process take turns: unordered, all but one would lose every round. */
export function turns(): <T>(id: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return async (id, work) => {
    const before = last.get(id);
    const mine = before === undefined ? work() : before.then(work, work);
    last.set(id, mine);
    try {
      return await mine;
    } finally {
      if (last.get(id) === mine) last.delete(id);
    }
  };
}
