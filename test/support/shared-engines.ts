import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import type { Collection, OpenStore } from 'platform/store/store.ts';
import { removeTopics } from '../../platform/test/events/kafka-fixture.ts';

/** The servers whose URLs are set for `npm run test:engines`; none of them in `npm test`. */
export interface SharedEngines {
  /** Settings for a stack: the URLs, and names for its data that no other stack uses. */
  env: Record<string, string>;
  /**
   * Removes the keys and topics of the stack. Its databases stay: the stand-in for mongod may hang when a database is
   * dropped beside other work.
   */
  remove(): Promise<void>;
}

const NAMES = ['MONGODB_URL', 'REDIS_URL', 'KAFKA_BROKERS'] as const;

/** Hides the URLs that are set in the shell from a process that a test starts. */
export const NO_ENGINES: Record<string, string> = Object.fromEntries(NAMES.map((name) => [name, '']));

/** @param folder identifies the stack: a second stack on this folder finds the data of the first */
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

/**
 * Settings for a service that runs in the test's own process. In test:engines: two replicas on the servers of its
 * store, with its events in a file. In `npm test`: one replica on files.
 */
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

/** Opens the document store of a test: on MongoDB in test:engines, in a file otherwise. */
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

/** Deletes the keys that match the pattern; resolves to their number. */
export async function deleteKeys(redis: Redis, match: string): Promise<number> {
  let count = 0;
  for await (const keys of redis.scanStream({ match, count: 1000 }))
    if (keys.length > 0) count += await redis.unlink(keys as string[]);
  return count;
}
