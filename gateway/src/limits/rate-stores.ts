import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import type { Clock } from 'platform/core/clock.ts';
import { settingOf } from 'platform/core/processes.ts';
import { clientOf, openConnection } from 'platform/rpc/client.ts';
import type { Identity } from 'platform/rpc/identity.ts';
import { openAuthRateStore, type RatesClient } from './auth-rate-store.ts';
import type { RateStore } from './rate-store.ts';

const TIMEOUT_MS = 1_000;

interface Opening {
  config: Readonly<Record<string, unknown>> & { REDIS_URL: string; REDIS_KEY_PREFIX: string };
  instanceId: string;
  identity: Identity;
  auth: RatesClient;
}

/** The store by which gateways share their counts: Redis where REDIS_URL is set, otherwise each replica of auth. */
export async function openRateStore({ config, instanceId, identity, auth }: Opening): Promise<RateStore> {
  const { REDIS_URL: url, REDIS_KEY_PREFIX: keyPrefix } = config;
  if (url !== '') {
    const { openRedisRateStore } = await import('./redis-rate-store.ts');
    return openRedisRateStore(instanceId, { url, keyPrefix, timeoutMs: TIMEOUT_MS });
  }
  const addresses = String(config[settingOf('auth', 'ADDRESS')]).split(',');
  if (addresses.length === 1) return openAuthRateStore(instanceId, [auth], () => undefined);
  const connections = addresses.map((address) => openConnection({ address, audience: 'auth', identity }));
  const replicas = connections.map(({ call }) => clientOf(AuthServiceService, call));
  return openAuthRateStore(instanceId, replicas, () => {
    for (const connection of connections) connection.close();
  });
}

/** For counts that concern one gateway only. */
export const aloneStore = (clock: Clock): RateStore => ({
  share: async (_window, counts) => ({
    nowMs: clock.now(),
    gateways: 1,
    epoch: '',
    others: counts.map(() => ({ current: 0, previous: 0 })),
  }),
  close: () => undefined,
});
