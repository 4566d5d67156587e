import type { Limit, RateCounters, Refusal } from './rate-counters.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { secondsLeft, WINDOW_MS } from './window.ts';

const POLICIES = { token: '"token"', organization: '"organization"', address: '"address"' } as const;
export type PolicyOf = keyof typeof POLICIES;

/** Headers of draft-ietf-httpapi-ratelimit-headers-10, for a reply to a request that these limits concern. */
export function rateHeaders(
  counters: Pick<RateCounters, 'left' | 'now'>,
  limits: readonly (readonly [name: PolicyOf, limit: Limit])[],
): Record<'ratelimit' | 'ratelimit-policy', string> {
  const t = secondsLeft(counters.now());
  const all = (text: (name: string, limit: Limit) => string): string =>
    limits.map(([name, limit]) => text(POLICIES[name], limit)).join(', ');
  return {
    ratelimit: all((name, limit) => `${name};r=${counters.left(limit)};t=${t}`),
    'ratelimit-policy': all((name, { max }) => `${name};q=${max};w=${WINDOW_MS / 1_000}`),
  };
}

/** 429 that names what was exceeded, and says when to come again. */
export const rateLimited = ({ limit, retryAfterS }: Refusal, name: PolicyOf): ServiceError =>
  new ServiceError('RATE_LIMITED', `${SENTENCES[name]}: at most ${limit.max} in a minute`, {
    headers: { 'Retry-After': String(retryAfterS) },
    facts: { limit: name },
  });
const SENTENCES: Record<PolicyOf, string> = {
  token: 'Too many requests with this token',
  organization: 'Too many requests of this organization',
  address: 'Too many requests without a valid token from this address',
};
