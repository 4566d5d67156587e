import { choice, integer, text, type ConfigOf } from '../core/config.ts';
import { DAY_MS } from '../core/clock.ts';
import { StartError } from '../core/start-error.ts';
import { DEAD_LETTER_RETENTION_MS, type EventBus, type Topic } from '../events/bus.ts';
import { kafkaSecurity, kafkaSecurityConfig } from '../events/kafka/security.ts';
import { tracedBus } from '../events/traced-bus.ts';
import { openSqliteBus } from '../events/sqlite/bus.ts';
import type { Log } from '../core/log.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import type { Collection, OpenStore } from '../store/store.ts';

/** Settings that choose the engines of a service: with a URL the server there, without one a SQLite file. */
export const engineConfig = {
  EMBEDDED: choice({
    values: ['allow', 'refuse'],
    default: 'allow',
    description:
      'What to do without the URL of an engine: allow a SQLite file, or refuse to start. In a container, whose files ' +
      'are gone with it, refuse.',
  }),
  MONGODB_URL: text({
    default: '',
    secret: true,
    form: ['a URL that begins with mongodb:// or mongodb+srv://', /^mongodb(\+srv)?:\/\/./],
    description:
      'URL of MongoDB (replica set or sharded cluster) for the document store, with credentials if it requires them; ' +
      'empty: a SQLite file in DATA_DIR.',
  }),
  MONGODB_DATABASE: text({
    default: 'agentmemory',
    form: ['a letter and at most 30 letters, digits, _ or -', /^[A-Za-z][\w-]{0,30}$/],
    description: 'Prefix of the database names; the database of a service is <prefix>_<service>.',
  }),
  MONGODB_POOL_MAX: integer({
    default: 50,
    min: 2,
    max: 1_000,
    description: 'Most connections to MongoDB per process.',
  }),
  MONGODB_TIMEOUT_MS: integer({
    default: 5_000,
    min: 500,
    max: 60_000,
    description: 'Time limit of one operation on MongoDB, retries included.',
  }),
  DEAD_LETTER_RETENTION_DAYS: integer({
    default: DEAD_LETTER_RETENTION_MS / DAY_MS,
    min: 1,
    max: 3_650,
    description: 'Days that the event bus keeps a dead letter; the same for all services.',
  }),
  KAFKA_BROKERS: text({
    default: '',
    form: ['host:port of each broker, with commas and no spaces between them', /^[\w.-]+:\d+(,[\w.-]+:\d+)*$/],
    description: 'Kafka brokers of the event bus, each host:port, comma-separated; empty: the SQLite file EVENTS_FILE.',
  }),
  KAFKA_TOPIC_PREFIX: text({
    default: '',
    form: ['at most 60 letters, digits, dots, _ or -', /^[\w.-]{1,60}$/],
    description: 'Prefix of the names of topics and consumer groups.',
  }),
  KAFKA_PARTITIONS: integer({
    default: 12,
    min: 1,
    max: 1_000,
    description: 'Partitions of every topic; the start fails if a topic has another number.',
  }),
  KAFKA_REPLICATION: integer({
    default: 1,
    min: 1,
    max: 9,
    description: 'Replicas of every topic that is created; use 3 in production.',
  }),
  KAFKA_TIMEOUT_MS: integer({
    default: 5_000,
    min: 500,
    max: 60_000,
    description: 'Time limit of one request to Kafka, retries included.',
  }),
  ...kafkaSecurityConfig,
};
export type EngineConfig = ConfigOf<typeof engineConfig>;

interface Opening {
  settings: EngineConfig & { LEASE_MS: number };
  service: string;
  log: Log;
}

/** The settings that name a server, for which a SQLite file is used otherwise; REDIS_URL is one of credits. */
export const URLS = ['MONGODB_URL', 'REDIS_URL', 'KAFKA_BROKERS'];

/** @throws StartError with a line for each engine that would be a SQLite file although EMBEDDED refuses that */
export function requireServers(settings: EngineConfig & Readonly<Record<string, unknown>>): void {
  if (settings.EMBEDDED === 'allow') return;
  const missing = URLS.filter((name) => settings[name] === '');
  if (missing.length > 0)
    throw new StartError(
      missing.map((name) => `${name} is missing, and EMBEDDED=refuse allows no SQLite file instead`).join('\n'),
    );
}

/** Imports a driver only if its engine is chosen: with SQLite a service starts faster. @throws StartError */
export async function openStoreEngine(
  { settings, service, log }: Opening,
  file: string,
  collections: readonly Collection<never>[],
): Promise<OpenStore> {
  if (settings.MONGODB_URL === '') return openSqliteStore(file, collections);
  const { openMongoStore } = await import('../store/mongo/store.ts');
  const { MONGODB_URL: url, MONGODB_POOL_MAX: poolMax, MONGODB_TIMEOUT_MS: timeoutMs } = settings;
  return openMongoStore(
    { url, database: `${settings.MONGODB_DATABASE}_${service}`, poolMax, timeoutMs, log },
    collections,
  );
}

/** @param publishes every topic that this process publishes to. @throws StartError */
export async function openBusEngine(
  { settings, service, log }: Opening,
  file: string,
  publishes: readonly Topic[],
): Promise<EventBus> {
  const deadLetterRetentionMs = settings.DEAD_LETTER_RETENTION_DAYS * DAY_MS;
  if (settings.KAFKA_BROKERS === '')
    return tracedBus(await openSqliteBus(file, { log, leaseMs: settings.LEASE_MS, deadLetterRetentionMs }), 'sqlite');
  const { openKafkaBus } = await import('../events/kafka/bus.ts');
  const {
    KAFKA_BROKERS,
    KAFKA_TOPIC_PREFIX: prefix,
    KAFKA_PARTITIONS: partitions,
    KAFKA_REPLICATION: replication,
    KAFKA_TIMEOUT_MS: timeoutMs,
  } = settings;
  const bus = await openKafkaBus({
    brokers: KAFKA_BROKERS.split(','),
    prefix,
    clientId: service,
    publishes,
    partitions,
    replication,
    deadLetterRetentionMs,
    timeoutMs,
    log,
    security: kafkaSecurity(settings),
  });
  return tracedBus(bus, 'kafka');
}
