import type { ShareRatesRequest, ShareRatesResponse } from 'proto/auth/v1/auth.ts';
import type { Deps } from '../deps.ts';

/** Takes the counts of a gateway, and answers with those of the others. It reads and writes no store. */
export async function shareRates(
  { rates, clock }: Pick<Deps, 'rates' | 'clock'>,
  { gatewayId, window, counts }: ShareRatesRequest,
): Promise<ShareRatesResponse> {
  const nowMs = clock.now();
  return {
    epoch: rates.epoch,
    nowMs,
    gateways: rates.gateways(gatewayId, nowMs),
    others: counts.map(({ key, ...count }) => ({ key, ...rates.share(gatewayId, window, key, count) })),
  };
}
