import { Redis } from 'ioredis';
import type { Admitted } from './window.ts';
import type { RateStore } from './rate-store.ts';

/** Counts are of use in their window and the next one. */
const KEEP_S = 180;
/** A gateway that has not called for this time does not count among the gateways. */
const GATEWAY_LIVES_MS = 5_000;
const COMMANDS_A_KEY = 6;

export interface RedisRateStoreOptions {
  url: string;
  keyPrefix: string;
  timeoutMs: number;
}

/** For each key and window a hash of gateways and their counts: what is told twice counts once. */
export function openRedisRateStore(gatewayId: string, { url, keyPrefix, timeoutMs }: RedisRateStoreOptions): RateStore {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: timeoutMs,
    connectTimeout: timeoutMs,
    retryStrategy: (attempt) => Math.min(100 * attempt, 2_000),
  });
  // every command says it, too
  redis.on('error', () => undefined);
  const gateways = `${keyPrefix}:rates:gateways`;
  const hash = (window: number, key: string): string => `${keyPrefix}:rates:${window}:${key}`;

  return {
    async share(window, counts) {
      const [seconds, micros] = (await redis.time()) as unknown as [string | number, string | number];
      const nowMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
      const pipeline = redis.pipeline();
      pipeline.zadd(gateways, nowMs, gatewayId);
      pipeline.zremrangebyscore(gateways, '-inf', nowMs - GATEWAY_LIVES_MS);
      pipeline.zcard(gateways);
      for (const { key, current, previous } of counts) {
        for (const [at, count] of [
          [window, current],
          [window - 1, previous],
        ] as const) {
          if (count > 0) pipeline.hset(hash(at, key), gatewayId, count);
          else pipeline.exists(hash(at, key));
          pipeline.expire(hash(at, key), KEEP_S);
          pipeline.hgetall(hash(at, key));
        }
      }
      const replies = ((await pipeline.exec()) ?? []).map(([error, reply]) => {
        if (error) throw error;
        return reply;
      });
      const others = (index: number): number =>
        Object.entries(replies[index] as Record<string, string>).reduce(
          (sum, [id, count]) => (id === gatewayId ? sum : sum + Number(count)),
          0,
        );
      return {
        nowMs,
        gateways: replies[2] as number,
        epoch: '',
        others: counts.map((_, index): Admitted => {
          const first = 3 + index * COMMANDS_A_KEY;
          return { current: others(first + 2), previous: others(first + 5) };
        }),
      };
    },
    close: () => redis.disconnect(),
  };
}
