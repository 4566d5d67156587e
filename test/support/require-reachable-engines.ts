import { Redis } from 'ioredis';
import { Kafka, logLevel } from 'kafkajs';
import { letIdleConnectionsSleep } from 'platform/events/kafka/idle-connections.ts';
import { MongoClient } from 'mongodb';

letIdleConnectionsSleep();

const TIMEOUT_MS = 5_000;

const CHECKS: Record<string, (url: string) => Promise<unknown>> = {
  async MONGODB_URL(url) {
    const client = new MongoClient(url, { serverSelectionTimeoutMS: TIMEOUT_MS });
    await client
      .db('admin')
      .command({ ping: 1 })
      .finally(() => client.close());
  },
  async REDIS_URL(url) {
    const redis = new Redis(url, { lazyConnect: true, retryStrategy: null, connectTimeout: TIMEOUT_MS });
    redis.on('error', () => undefined);
    await redis
      .connect()
      .then(() => redis.ping())
      .finally(() => redis.disconnect());
  },
  async KAFKA_BROKERS(brokers) {
    const admin = new Kafka({
      brokers: brokers.split(','),
      logLevel: logLevel.NOTHING,
      connectionTimeout: TIMEOUT_MS,
      retry: { retries: 1 },
    }).admin();
    await admin.connect().finally(() => admin.disconnect());
  },
};

/** @throws Error before the first test when a server whose URL is set does not answer */
export async function requireReachableEngines(): Promise<void> {
  for (const [name, check] of Object.entries(CHECKS)) {
    const url = process.env[name];
    if (!url) continue;
    await check(url).catch((cause: unknown) => {
      throw new Error(`${name} names a server that does not answer; npm run engines -- status tells what runs`, {
        cause,
      });
    });
  }
}
