/** Time as a dependency, so that rules are pure and tests need not wait. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

/** What the store's clock is ahead of this machine's, in milliseconds. */
let aheadMs = 0;
/** Below this the two are the same: times and ids of one process must not jump with every measurement. */
const SAME_MS = 1_000;

export const storeAheadMs = (): number => aheadMs;
export const systemClock: Clock = { now: () => Date.now() + aheadMs };

/**
 * Makes `systemClock` and new ids of this process go by the store's time, so that replicas agree though their machines do not.
 * Resolves to the correction when it changed.
 */
export async function followTime(storeNow: () => Promise<number>): Promise<number | undefined> {
  const asked = performance.now();
  const now = await storeNow();
  const tookMs = performance.now() - asked;
  const measuredMs = Math.round(now + tookMs / 2 - Date.now());
  if (Math.abs(measuredMs - aheadMs) < SAME_MS + tookMs) return undefined;
  aheadMs = measuredMs;
  return aheadMs;
}

/** ISO-8601 UTC text of fixed width: text order is time order. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
