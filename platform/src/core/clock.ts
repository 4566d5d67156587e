import { ServiceError } from './errors.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Time as a dependency, so that rules are pure and tests need not wait. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

/** What the store's clock is ahead of this machine's, in milliseconds. */
let aheadMs = 0;
/** Below this the two are the same: times and ids of one process must not jump with every measurement. */
const SAME_MS = 1_000;
/** Above this one of the two is wrong, not adrift: a retention job that believed it would remove what must stay. */
const LARGEST_MS = HOUR_MS;

/** For what is between machines, whatever store they are on. */
export const machineClock: Clock = { now: () => Date.now() };
export const systemClock: Clock = { now: () => Date.now() + aheadMs };

/**
 * Makes `systemClock` and new ids of this process go by the store's time, so that replicas agree though their machines do not.
 * Resolves to the correction when it changed. @throws ServiceError above an hour; the former correction stays
 */
export async function followTime(storeNow: () => Promise<number>): Promise<number | undefined> {
  const asked = performance.now();
  const now = await storeNow();
  const tookMs = performance.now() - asked;
  const measuredMs = Math.round(now + tookMs / 2 - Date.now());
  if (Math.abs(measuredMs - aheadMs) < SAME_MS + tookMs) return undefined;
  if (Math.abs(measuredMs) > LARGEST_MS) {
    const apart = `${(Math.abs(measuredMs) / HOUR_MS).toFixed(1)} hours ${measuredMs > 0 ? 'ahead of' : 'behind'}`;
    throw new ServiceError(
      'UNAVAILABLE',
      `The clock of the document store is ${apart} this machine's, and at most one hour is made up for: set the wrong one right`,
    );
  }
  aheadMs = measuredMs;
  return aheadMs;
}

/** ISO-8601 UTC text of fixed width: text order is time order. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
