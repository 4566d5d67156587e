/** Time as a dependency, so that rules are pure and tests need not wait. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** ISO-8601 UTC text of fixed width: text order is time order. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
