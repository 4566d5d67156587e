/** Limits hold for any minute: a sliding window of this length. */
export const WINDOW_MS = 60_000;

/** Requests of one key that gateways have admitted, by window: a minute that begins at a multiple of 60 s. */
export interface Admitted {
  current: number;
  previous: number;
}

export const windowAt = (nowMs: number): number => Math.floor(nowMs / WINDOW_MS);
/** The part of the present window that has passed: 0 to 1. */
const passed = (nowMs: number): number => (nowMs % WINDOW_MS) / WINDOW_MS;

/**
 * How many requests the last 60 s had, if those of the previous window came evenly: the sliding window counter, which
 * needs two numbers for a key.
 */
export const countAt = ({ current, previous }: Admitted, nowMs: number): number =>
  previous * (1 - passed(nowMs)) + current;

/** Seconds until a request is admitted under this limit, at least 1, if nothing else comes. */
export function secondsUntilRoom({ current, previous }: Admitted, limit: number, nowMs: number): number {
  const share = passed(nowMs);
  // in this window, as the previous one counts less and less
  const inThis = previous === 0 ? 1 : 1 - (limit - 1 - current) / previous;
  // or in the next one, where this one is the previous
  const inNext = current === 0 ? 0 : Math.max(0, 1 - (limit - 1) / current);
  const windows = current <= limit - 1 ? Math.max(0, inThis - share) : 1 - share + inNext;
  return Math.max(1, Math.ceil((windows * WINDOW_MS) / 1_000));
}

/** Seconds until the present window ends. */
export const secondsLeft = (nowMs: number): number => Math.ceil(((1 - passed(nowMs)) * WINDOW_MS) / 1_000);
