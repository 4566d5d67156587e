import { newId } from 'platform/core/ids.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import type { ServiceClient } from 'platform/rpc/call.ts';
import type { AuthServiceService, ShareRatesResponse } from 'proto/auth/v1/auth.ts';
import type { RateStore } from './rate-store.ts';

export type RatesClient = Pick<ServiceClient<typeof AuthServiceService>, 'shareRates'>;

const SELF = servicePrincipal('gateway');

/**
 * The gateways tell every replica of auth, so that none of them must know the others and one that has stopped is not
 * missed.
 * @param replicas a client of each
 */
export function openAuthRateStore(gatewayId: string, replicas: readonly RatesClient[], close: () => void): RateStore {
  return {
    async share(window, counts) {
      const request = { gatewayId, window, counts: [...counts] };
      const options = { principal: SELF, requestId: newId() };
      const answers = await Promise.allSettled(replicas.map((replica) => replica.shareRates(request, options)));
      const told = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
      const [first] = told;
      if (!first) throw (answers[0] as PromiseRejectedResult).reason;
      return {
        nowMs: first.nowMs,
        gateways: Math.max(...told.map(({ gateways }) => gateways)),
        epoch: told.map(({ epoch }) => epoch).join(),
        others: counts.map((_, index) => ({
          current: most(told, index, 'current'),
          previous: most(told, index, 'previous'),
        })),
      };
    },
    close,
  };
}

/** A replica that was not reached for a while knows less than the others. */
const most = (told: readonly ShareRatesResponse[], index: number, part: 'current' | 'previous'): number =>
  Math.max(...told.map(({ others }) => others[index]?.[part] ?? 0));
