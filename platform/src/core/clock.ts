import { invalid, ServiceError } from './errors.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** The time as a dependency: rules stay pure, and tests need not wait. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

/** By how much the store's clock is ahead of this machine's, as last measured. */
let aheadMs = 0;
/** A smaller difference is ignored: times and ids of a process must not jump with every measurement. */
const MIN_CHANGE_MS = 1_000;
/** With a larger difference one of the clocks is wrong; retention jobs that used it could remove data too early. */
const MAX_AHEAD_MS = HOUR_MS;

/** The clock of this machine, for protocols between machines that may use different stores. */
export const machineClock: Clock = { now: () => Date.now() };
/** The clock of this machine, corrected to the store's: see followTime. */
export const systemClock: Clock = { now: () => Date.now() + aheadMs };

/**
 * Corrects `systemClock`, and with it the ids of this process, to the store's time, so that replicas agree on the time
 * although the clocks of their machines differ. Call it again from time to time.
 * @returns the new correction in milliseconds; undefined when it did not change
 * @throws ServiceError UNAVAILABLE when the clocks differ by more than an hour; the correction does not change then
 */
export async function followTime(storeNow: () => Promise<number>): Promise<number | undefined> {
  const askedAt = performance.now();
  const now = await storeNow();
  const tookMs = performance.now() - askedAt;
  const measuredMs = Math.round(now + tookMs / 2 - Date.now());
  if (Math.abs(measuredMs - aheadMs) < MIN_CHANGE_MS + tookMs) return undefined;
  if (Math.abs(measuredMs) > MAX_AHEAD_MS) {
    const apart = `${(Math.abs(measuredMs) / HOUR_MS).toFixed(1)} hours ${measuredMs > 0 ? 'ahead of' : 'behind'}`;
    throw new ServiceError(
      'UNAVAILABLE',
      `The clock of the document store is ${apart} this machine's, and at most one hour can be corrected: ` +
        'set the clock that is wrong',
    );
  }
  aheadMs = measuredMs;
  return aheadMs;
}

/** ISO-8601 UTC text of fixed width, so that it sorts by time. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** Date.parse takes the 30th of February for the 2nd of March. */
function isDay(date: string): boolean {
  const ms = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(ms) && isoTime(ms).startsWith(date);
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/**
 * @returns the time of an ISO 8601 text with a zone, in milliseconds since the epoch
 * @throws ServiceError INVALID_REQUEST naming the path
 */
export function requireTime(path: string, text: string): number {
  const ms = ISO_TIME.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw invalid(path, 'must be an ISO 8601 time with a zone, such as 2030-01-31T12:00:00Z');
  return ms;
}

const MAX_OVERLAP_SECONDS = 30 * 24 * 3_600;

/**
 * How long an old token or secret is valid beside the new one, in milliseconds.
 * @throws ServiceError INVALID_REQUEST
 */
export function requireOverlap(seconds: number): number {
  if (!(seconds >= 0 && seconds <= MAX_OVERLAP_SECONDS))
    throw invalid('/overlapSeconds', `must be from 0 to ${MAX_OVERLAP_SECONDS}`);
  return seconds * 1_000;
}
