import type { Clock } from 'platform/core/clock.ts';
import type { Log } from 'platform/core/log.ts';
import { outsideTraces } from 'platform/telemetry/traces.ts';
import type { OwnCount, RateStore } from './rate-store.ts';
import { countAt, secondsUntilRoom, windowAt, type Admitted } from './window.ts';

/** A gateway tells the store this often that it lives, also without requests. */
export const HEARTBEAT_MS = 1_000;
/** At least this long lies between two calls of the store, however many requests come. */
const PAUSE_MS = 20;
/** What the others have admitted is asked again when it is older. */
const STALE_MS = 2_000;
/** After this time without an answer of the store, the gateway enforces its share alone. */
const LOST_MS = 3_000;
/** The longest unused beyond these are forgotten. */
const MAX_KEYS = 100_000;
const MAX_COUNTS = 5_000;
const LOG_MS = 60_000;

/** A limit on the requests of one key within any minute. */
export interface Limit {
  key: string;
  /** Requests in 60 s. */
  max: number;
}
export interface Refusal {
  limit: Limit;
  retryAfterS: number;
}

interface Counter {
  window: number;
  own: Admitted;
  others: Admitted;
  /** What the store was told last of the present window. */
  told: number;
  /** When the store last said what the others have. */
  askedAt: number;
  /** Requests that this gateway may admit before it asks again, and those that it has admitted since. */
  allowance: number;
  since: number;
}

export interface RateCounters {
  /** Counts the request under each limit, unless one of them refuses it. Does no I/O. */
  admit(limits: readonly Limit[]): Refusal | undefined;
  /** Whether a request would be refused. */
  refusal(limits: readonly Limit[]): Refusal | undefined;
  /** Counts it, whatever the limits say. */
  count(limits: readonly Limit[]): void;
  /** How many more requests this gateway would admit now. */
  left(limit: Limit): number;
  /** Tells and asks the store now; resolves when it has answered or failed. */
  share(): Promise<void>;
  /** The store's time. */
  now(): number;
  /** Whether the store has not answered for so long that this gateway enforces its share alone. */
  isLost(): boolean;
  close(): void;
}

/**
 * Counts requests of all gateways without asking anybody on their way: what the others have admitted is learnt in the
 * background. Between two answers of the store a gateway admits at most half of its part of what was left, so that all
 * of them together stay within the limit; it asks again when a quarter of that is used. When the store does not answer,
 * each gateway admits its share of the limit (ADR 31).
 */
export function makeRateCounters(store: RateStore, clock: Clock, log: Log): RateCounters {
  /** The longest unused first. */
  const counters = new Map<string, Counter>();
  /** Keys of which the store must be told. */
  const untold = new Set<string>();
  let isSoon = false;
  let gateways = 1;
  let epoch = '';
  let aheadMs = 0;
  let answeredAt = clock.now();
  let underWay: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  // at the start auth may not listen yet
  let loggedAt = clock.now();
  const now = (): number => clock.now() + aheadMs;
  const isLost = (): boolean => clock.now() - answeredAt > LOST_MS;

  function counterOf(key: string, window: number): Counter {
    let counter = counters.get(key);
    if (counter) counters.delete(key);
    else {
      if (counters.size >= MAX_KEYS) counters.delete(counters.keys().next().value as string);
      const none = { current: 0, previous: 0 };
      counter = { window, own: none, others: none, told: 0, askedAt: 0, allowance: Infinity, since: 0 };
    }
    counters.set(key, counter);
    if (counter.window !== window) roll(counter, window);
    return counter;
  }

  /** What was admitted in the last 60 s, by all gateways; by this one alone while the store is lost. */
  const admitted = ({ own, others }: Counter): Admitted =>
    isLost() ? own : { current: own.current + others.current, previous: own.previous + others.previous };
  const maxOf = ({ max }: Limit): number => (isLost() ? Math.max(1, Math.floor(max / gateways)) : max);

  function refusal(limits: readonly Limit[]): Refusal | undefined {
    const at = now();
    const window = windowAt(at);
    for (const limit of limits) {
      // one that was never counted is not made for a look
      const counter = counters.has(limit.key) && counterOf(limit.key, window);
      if (!counter) continue;
      const max = maxOf(limit);
      const sum = admitted(counter);
      if (countAt(sum, at) + 1 > max) return { limit, retryAfterS: secondsUntilRoom(sum, max, at) };
      if (counter.since >= allowanceOf(counter, limit, sum, at)) {
        ask(limit.key);
        return { limit, retryAfterS: 1 };
      }
    }
    return undefined;
  }

  /**
   * Half of this gateway's part of what was left when the store last answered: the others may have admitted as much
   * since they were asked.
   */
  function allowanceOf(counter: Counter, { max }: Limit, sum: Admitted, at: number): number {
    if (gateways === 1 || isLost()) return Infinity;
    if (counter.allowance === Infinity)
      counter.allowance = counter.since + Math.max(1, Math.floor((max - countAt(sum, at)) / (2 * gateways)));
    return counter.allowance;
  }

  function count(limits: readonly Limit[]): void {
    const window = windowAt(now());
    for (const { key } of limits) {
      const counter = counterOf(key, window);
      counter.own = { ...counter.own, current: counter.own.current + 1 };
      counter.since += 1;
      untold.add(key);
      if (clock.now() - counter.askedAt > STALE_MS || counter.since * 4 >= counter.allowance) ask(key);
    }
  }

  /** The store is told with the next heartbeat of what was counted; of this key it is told and asked soon. */
  function ask(key: string): void {
    untold.add(key);
    if (isSoon || underWay) return;
    isSoon = true;
    plan(PAUSE_MS);
  }
  function plan(afterMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => void outsideTraces(share), afterMs).unref();
  }

  const share = (): Promise<void> =>
    (underWay ??= tell()
      .then(
        () => plan(isSoon ? PAUSE_MS : HEARTBEAT_MS),
        (error: unknown) => {
          plan(HEARTBEAT_MS);
          if (!isLost() || clock.now() - loggedAt < LOG_MS) return;
          loggedAt = clock.now();
          log.warn({ error: String(error) }, 'what other gateways admit is unknown, so this one enforces its share');
        },
      )
      .finally(() => {
        underWay = undefined;
      }));

  async function tell(): Promise<void> {
    const window = windowAt(now());
    const keys = [...untold].slice(0, MAX_COUNTS);
    for (const key of keys) untold.delete(key);
    isSoon = false;
    const asked = keys.map((key) => ({ key, counter: counterOf(key, window) }));
    const counts: OwnCount[] = asked.map(({ key, counter: { own } }) => ({ key, ...own }));
    const answer = await store.share(window, counts).catch((error: unknown) => {
      for (const key of keys) untold.add(key);
      throw error;
    });
    const at = clock.now();
    answeredAt = at;
    aheadMs = answer.nowMs - at;
    gateways = answer.gateways;
    if (epoch !== answer.epoch) for (const [key, { told }] of counters) if (told > 0) untold.add(key);
    epoch = answer.epoch;
    asked.forEach(({ counter }, index) => {
      if (counter.window === window) counter.others = answer.others[index]!;
      counter.told = counts[index]!.current;
      counter.askedAt = at;
      counter.since = counter.own.current - counter.told;
      counter.allowance = Infinity;
    });
  }
  plan(0);

  return {
    refusal,
    count,
    admit(limits) {
      const refused = refusal(limits);
      if (!refused) count(limits);
      return refused;
    },
    left(limit) {
      const counter = counters.get(limit.key);
      if (!counter) return maxOf(limit);
      const at = now();
      if (counter.window !== windowAt(at)) roll(counter, windowAt(at));
      return Math.max(0, Math.floor(maxOf(limit) - countAt(admitted(counter), at)));
    },
    share,
    now,
    isLost,
    close() {
      clearTimeout(timer);
      store.close();
    },
  };
}

/** Windows have passed since the counter was used last. */
function roll(counter: Counter, window: number): void {
  const isNext = counter.window === window - 1;
  for (const part of ['own', 'others'] as const)
    counter[part] = { current: 0, previous: isNext ? counter[part].current : 0 };
  counter.window = window;
  counter.told = 0;
  counter.since = 0;
  counter.allowance = Infinity;
}
