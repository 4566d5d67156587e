import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import type { Collection, OpenStore } from 'platform/store/store.ts';
import { removeTopics } from '../../platform/test/events/kafka-fixture.ts';

/** Servers that a run of `npm run test:engines` names; none of them in `npm test`. */
export interface SharedEngines {
  /** What a stack is told: the URLs, and names that no other stack has. */
  env: Record<string, string>;
  /** Removes what the stack left there; its databases stay: the stand-in for mongod may hang when one is dropped beside other work. */
  remove(): Promise<void>;
}

const NAMES = ['MONGODB_URL', 'REDIS_URL', 'KAFKA_BROKERS'] as const;

/** For a process that is started by a test: what the shell names is not meant for it. */
export const NO_ENGINES: Record<string, string> = Object.fromEntries(NAMES.map((name) => [name, '']));

/** @param folder names the stack: a second one on this folder meets the data of the first */
export function sharedEngines(folder: string, given: NodeJS.ProcessEnv = process.env): SharedEngines {
  const [mongodb, redis, kafka] = NAMES.map((name) => (given.TEST_ENGINES ? given[name] : undefined));
  const name = `t${createHash('sha256').update(folder).digest('hex').slice(0, 10)}`;
  const env = {
    ...(mongodb && { MONGODB_URL: mongodb, MONGODB_DATABASE: name }),
    ...(redis && { REDIS_URL: redis, REDIS_KEY_PREFIX: name }),
    ...(kafka && { KAFKA_BROKERS: kafka, KAFKA_TOPIC_PREFIX: `${name}.`, KAFKA_PARTITIONS: '2' }),
  };
  return {
    env,
    async remove() {
      await Promise.all([redis && removeKeys(redis, `${name}:*`), kafka && removeTopics(kafka.split(','), `${name}.`)]);
    },
  };
}

export interface ProgramEngines {
  env: Record<string, string>;
  replicas: number;
  remove(): Promise<void>;
}

/** For a program in the test's own process: two replicas on the servers of its store, a file for its events; one on files in `npm test`. */
export function programEngines(name = newId()): ProgramEngines {
  const {
    env: { MONGODB_URL, MONGODB_DATABASE, REDIS_URL, REDIS_KEY_PREFIX },
    remove,
  } = sharedEngines(name, { ...process.env, KAFKA_BROKERS: '' });
  if (!MONGODB_URL) return { env: {}, replicas: 1, remove };
  return {
    env: {
      MONGODB_URL,
      MONGODB_DATABASE,
      MONGODB_TIMEOUT_MS: '30000',
      ...(REDIS_URL && { REDIS_URL, REDIS_KEY_PREFIX }),
    } as Record<string, string>,
    replicas: 2,
    remove,
  };
}

/** The document store of a test: on MongoDB when it is shared, in a file otherwise. */
export async function openTestStore(
  file: string,
  collections: readonly Collection<never>[],
  log = makeLog('test', 'silent'),
): Promise<OpenStore> {
  const {
    env: { MONGODB_URL: url, MONGODB_DATABASE: database },
  } = programEngines(file);
  if (!url) return openSqliteStore(file, collections);
  return openMongoStore({ url, database: database as string, poolMax: 50, timeoutMs: 60_000, log }, collections);
}

async function removeKeys(url: string, match: string): Promise<void> {
  const redis = new Redis(url);
  await deleteKeys(redis, match);
  redis.disconnect();
}

/** Deletes what matches; resolves to the number of keys. */
export async function deleteKeys(redis: Redis, match: string): Promise<number> {
  let count = 0;
  for await (const keys of redis.scanStream({ match, count: 1000 }))
    if (keys.length > 0) count += await redis.unlink(keys as string[]);
  return count;
}
