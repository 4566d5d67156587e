import { newId } from 'platform/core/ids.ts';

/** A gateway that has not called for this time does not count among the gateways. */
const GATEWAY_LIVES_MS = 5_000;
/** Counts of more keys than this are forgotten, the oldest first; their gateways then enforce what they know. */
const MAX_KEYS = 500_000;

/** What one gateway has admitted in a window and in the one before. */
export interface Count {
  current: number;
  previous: number;
}
interface Told extends Count {
  window: number;
}

/** What the gateways have told of their rates. It is lost with the process: the gateways know it. */
export interface RateBoard {
  /** Another one in each process of auth. */
  readonly epoch: string;
  /** Notes that the gateway lives. @returns how many do */
  gateways(gatewayId: string, now: number): number;
  /** Notes the gateway's own count of a key, and returns what the others have told of it. */
  share(gatewayId: string, window: number, key: string, count: Count): Count;
}

export function makeRateBoard(): RateBoard {
  const byKey = new Map<string, Map<string, Told>>();
  const seenAt = new Map<string, number>();
  let newest = 0;

  function forgetBefore(window: number): void {
    for (const [key, told] of byKey) {
      for (const [gatewayId, { window: of }] of told) if (of < window) told.delete(gatewayId);
      if (told.size === 0) byKey.delete(key);
    }
  }

  return {
    epoch: newId(),
    gateways(gatewayId, now) {
      seenAt.set(gatewayId, now);
      for (const [id, at] of seenAt) if (now - at > GATEWAY_LIVES_MS) seenAt.delete(id);
      return seenAt.size;
    },
    share(gatewayId, window, key, { current, previous }) {
      if (window > newest) {
        newest = window;
        forgetBefore(window - 1);
      }
      const told = byKey.get(key) ?? new Map<string, Told>();
      byKey.set(key, told);
      told.set(gatewayId, { window, current, previous });
      if (byKey.size > MAX_KEYS) byKey.delete(byKey.keys().next().value as string);
      const others: Count = { current: 0, previous: 0 };
      for (const [id, of] of told) {
        if (id === gatewayId) continue;
        if (of.window === window) {
          others.current += of.current;
          others.previous += of.previous;
        } else if (of.window === window - 1) others.previous += of.current;
      }
      return others;
    },
  };
}
