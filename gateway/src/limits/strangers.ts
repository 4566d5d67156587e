import { ServiceError } from 'platform/core/errors.ts';
import { networksOf } from '../http/connection-limits.ts';
import { rateHeaders, rateLimited } from './headers.ts';
import type { Limit, RateCounters } from './rate-counters.ts';

/** Tokens that were valid lately, so that a flood from the same address does not shut them out. */
const MAX_REMEMBERED = 10_000;

export interface Strangers {
  /**
   * Refuses a request before auth is asked. Nothing that auth decides is remembered: a bearer that was valid is asked
   * about again each time.
   * @throws ServiceError RATE_LIMITED
   */
  requireRoom(address: string, bearer: string | undefined, method: string): void;
  wasValid(bearer: string): void;
  /** Counts a request that was denied. @returns the headers of its reply */
  wasDenied(address: string, bearer: string | undefined, method: string, error: unknown): Record<string, string>;
}

/**
 * Limits requests without a valid token by the client's address (IPv6: by its networks, as connections are), and denied
 * requests of one token to one method (a token without the licence for it), so that neither costs auth more than that.
 * @param shared counts of all gateways
 * @param own counts of this gateway alone: their keys hold bearers, which must not leave the process
 * @param max requests per minute
 */
export function makeStrangers(shared: RateCounters, own: RateCounters, max: number): Strangers {
  /** The longest unused first. */
  const remembered = new Set<string>();
  const addressLimits = (address: string): Limit[] =>
    networksOf(address).map((network, i) => ({ key: `strangers:${network}`, max: max * 2 ** i }));
  const ofMethod = (bearer: string, method: string): Limit[] => [{ key: `${method} ${bearer}`, max }];

  return {
    requireRoom(address, bearer, method) {
      const isKnown = bearer !== undefined && remembered.has(bearer);
      const refused = isKnown ? undefined : shared.refusal(addressLimits(address));
      if (refused) throw rateLimited(refused, 'address');
      const repeated = bearer === undefined ? undefined : own.refusal(ofMethod(bearer, method));
      if (repeated) throw rateLimited(repeated, 'token');
    },
    wasValid(bearer) {
      remembered.delete(bearer);
      remembered.add(bearer);
      if (remembered.size > MAX_REMEMBERED) remembered.delete(remembered.values().next().value as string);
    },
    wasDenied(address, bearer, method, error) {
      if (error instanceof ServiceError && error.reason !== 'UNAUTHENTICATED') {
        if (bearer !== undefined && error.reason in DENIED) own.count(ofMethod(bearer, method));
        return {};
      }
      if (!(error instanceof ServiceError)) return {};
      if (bearer !== undefined) remembered.delete(bearer);
      const limits = addressLimits(address);
      shared.count(limits);
      return rateHeaders(shared, [['address', limits[0] as Limit]]);
    },
  };
}

const DENIED: Partial<Record<ServiceError['reason'], true>> = {
  TIER_REQUIRED: true,
  ADMIN_REQUIRED: true,
  FORBIDDEN: true,
};
