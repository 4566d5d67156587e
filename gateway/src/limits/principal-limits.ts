import type { Principal } from 'platform/core/principal.ts';
import type { Limit } from './rate-counters.ts';

/** Requests per minute that a token may make, by the name of the rate in the method's options. */
export type Rates = Readonly<Record<string, number>> & { readonly requests: number };

/** Tokens are free to make, so an organization may make so many times the requests of one. */
const ORGANIZATION_FACTOR = 5;

/** What counts as one token: a user may be in several organizations, and neither of them slows down the other. */
export const tokenKey = ({ organizationId, kind, subject }: Principal): string =>
  `${organizationId}:${kind.toLowerCase()}:${subject}`;

/**
 * What limits the requests of a principal to methods of this rate: its token (or user) first, then its organization.
 * The licence tier multiplies both.
 */
export function limitsOf(principal: Principal, rate: string, rates: Rates): [token: Limit, organization: Limit] {
  const { organizationId, limits } = principal;
  const max = (rates[rate] ?? rates.requests) * (limits.rate_factor ?? 1);
  return [
    { key: `${rate}:${tokenKey(principal)}`, max },
    { key: `${rate}:organization:${organizationId}`, max: max * ORGANIZATION_FACTOR },
  ];
}
