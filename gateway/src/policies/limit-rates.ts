import type { RateLeft } from 'proto/auth/v1/auth.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Principal } from 'platform/core/principal.ts';
import type { ServiceRoute } from '../contract/routes.ts';
import type { Policy } from '../http/exchange.ts';
import type { OwnDenials } from '../limits/denials.ts';
import { rateHeaders, rateLimited } from '../limits/headers.ts';
import { limitsOf, type Rates } from '../limits/principal-limits.ts';
import type { RateCounters } from '../limits/rate-counters.ts';
import type { UnderWay } from '../limits/under-way.ts';

export interface LimitRatesDeps {
  counters: RateCounters;
  rates: Rates;
  underWay: UnderWay;
  denials: OwnDenials;
}

/**
 * Third policy: 429 for a token or an organization that makes too many requests, in a minute or at once. Every reply
 * after it says what is left.
 */
export function makeLimitRates({ counters, rates, underWay, denials }: LimitRatesDeps): Policy {
  return (req, res, next) => {
    const { principal, route, requestId, headers } = req.exchange;
    const { options, method } = route as ServiceRoute;
    if (principal) {
      const limits = limitsOf(principal, options.rate, rates);
      const refused = counters.admit(limits);
      Object.assign(
        headers,
        rateHeaders(counters, [
          ['token', limits[0]],
          ['organization', limits[1]],
        ]),
      );
      const allRatesLeft = (): RateLeft[] => Object.keys(rates).flatMap((rate) => ratesLeft(principal, rate));
      req.exchange.ratesLeft = allRatesLeft;
      try {
        if (refused) throw rateLimited(refused, refused.limit === limits[0] ? 'token' : 'organization');
        underWay.enter(principal, res);
      } catch (error) {
        note(principal, error, method.path, requestId);
        throw error;
      }
    }
    next();
  };

  function ratesLeft(principal: Principal, rate: string): RateLeft[] {
    const [token, organization] = limitsOf(principal, rate, rates);
    return Object.entries({ token, organization }).map(([limit, each]) => ({
      rate,
      limit,
      maxPerMinute: each.max,
      left: counters.left(each),
    }));
  }

  function note(principal: Principal, error: unknown, method: string, requestId: string): void {
    if (error instanceof ServiceError) denials.note(principal, error.reason, method, requestId);
  }
}
