import { Redis } from 'ioredis';
import type { Clock } from 'platform/core/clock.ts';
import type { Store } from 'platform/store/store.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { deleteKeys } from '../../../test/support/shared-engines.ts';
import { openRedisLedger, type RedisLedgerOptions } from '../src/ledger/redis/ledger.ts';
import { LEDGER_ACCOUNTS, LEDGER_ROWS } from '../src/ledger/redis/mirror.ts';
import { harnessOf, RETENTION_MS, type LedgerHarness } from './ledger-harness.ts';

export function urlOf(name: 'REDIS_URL' | 'MONGODB_URL'): string {
  const url = process.env[name];
  if (!url) throw new Error(`set ${name}; npm run engines -- up prints it`);
  return url;
}

export interface RedisHarness extends LedgerHarness {
  readonly keyPrefix: string;
  /** A connection of the tests' own to the engine's server. */
  readonly redis: Redis;
  /** The store of the mirror. */
  readonly store: Store;
  /** Opens one more replica on the same data. */
  open(given?: Partial<RedisLedgerOptions>): ReturnType<typeof openRedisLedger>;
}

/**
 * The ledger on the server of REDIS_URL and its mirror on that of MONGODB_URL, with a key prefix and a database of its
 * own.
 */
export async function redisHarness(
  url = urlOf('REDIS_URL'),
  settings: Partial<RedisLedgerOptions> = {},
): Promise<RedisHarness> {
  const keyPrefix = `test-${newId()}`;
  const log = makeLog('credits', 'silent');
  const { store, platformStore, close } = await openMongoStore(
    { url: urlOf('MONGODB_URL'), database: keyPrefix, poolMax: 20, timeoutMs: 10_000, log },
    [LEDGER_ROWS, LEDGER_ACCOUNTS],
  );
  const open = (clock: Clock, given: Partial<RedisLedgerOptions> = {}) =>
    openRedisLedger({
      url,
      keyPrefix,
      timeoutMs: 60_000,
      unsafe: 'refuse',
      retentionMs: RETENTION_MS,
      store,
      platformStore,
      clock,
      log,
      ...settings,
      ...given,
    });
  const redis = new Redis(url);
  let opened = false;
  const openFirst = async (clock: Clock) => {
    const ledger = await open(clock);
    opened = true;
    return ledger;
  };
  const harness = await harnessOf(openFirst, async () => {
    await close();
    // a server on which no ledger was opened has no keys of this test, and may never answer a scan
    if (opened) await deleteKeys(redis, `${keyPrefix}:*`);
    redis.disconnect();
  });
  return Object.assign(harness, {
    keyPrefix,
    redis,
    store,
    open: (given?: Partial<RedisLedgerOptions>) => open({ now: harness.nowMs }, given),
  });
}

/** Two replicas on the same data. */
export async function twoReplicas(): Promise<LedgerHarness> {
  const harness = await redisHarness();
  let second = await harness.open();
  let current = 0;
  return {
    get opened() {
      return current === 0 ? harness.opened : second;
    },
    useReplica: (replica) => {
      current = replica;
    },
    nowMs: harness.nowMs,
    advance: harness.advance,
    async reopen() {
      if (current === 0) return harness.reopen();
      await second.close();
      second = await harness.open();
    },
    async stop() {
      await second.close();
      await harness.stop();
    },
  };
}

/** The prefix of the keys of an organization that has an account. */
export const keysIn = async ({ redis, keyPrefix }: RedisHarness, organizationId: string): Promise<string> =>
  (await redis.keys(`${keyPrefix}:*:${organizationId}:account`))[0]!.replace(/account$/, '');

/** Saves an organization's keys. The result restores them, as if Redis had lost its writes since. */
export async function snapshotOf(harness: RedisHarness, organizationId: string): Promise<() => Promise<void>> {
  const { redis } = harness;
  const match = `${await keysIn(harness, organizationId)}*`;
  const dumps = await Promise.all(
    (await redis.keys(match)).map(async (key) => [key, await redis.dumpBuffer(key)] as const),
  );
  return async () => {
    await deleteKeys(redis, match);
    for (const [key, dump] of dumps) await redis.restore(key, 0, dump);
  };
}
