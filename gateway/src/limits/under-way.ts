import type { ServerResponse } from 'node:http';
import { ServiceError } from 'platform/core/errors.ts';
import type { Principal } from 'platform/core/principal.ts';
import { tokenKey } from './principal-limits.ts';

export interface UnderWay {
  /** Counts a request until its reply has been passed on. @throws ServiceError TOO_MANY_REQUESTS */
  enter(principal: Principal, res: ServerResponse): void;
}

/** Bounds the requests of one token, and of one organization, that this gateway works on at once. */
export function makeUnderWay({ perToken, perOrganization }: { perToken: number; perOrganization: number }): UnderWay {
  const counts = new Map<string, number>();
  return {
    enter(principal, res) {
      // its client left while auth decided: it will not tell a second time that it is closed
      if (res.closed) return;
      const limits: [string, number, string][] = [
        [tokenKey(principal), perToken, 'token'],
        [`organization:${principal.organizationId}`, perOrganization, 'organization'],
      ];
      for (const [key, max, limit] of limits)
        if ((counts.get(key) ?? 0) >= max)
          throw new ServiceError('TOO_MANY_REQUESTS', `At most ${max} requests of one ${limit} may be under way`, {
            headers: { 'Retry-After': '1' },
            facts: { limit },
          });
      for (const [key] of limits) counts.set(key, (counts.get(key) ?? 0) + 1);
      res.once('close', () => {
        for (const [key] of limits) {
          const left = (counts.get(key) as number) - 1;
          if (left === 0) counts.delete(key);
          else counts.set(key, left);
        }
      });
    },
  };
}
