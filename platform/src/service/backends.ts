import { integer, text, type ConfigOf } from '../core/config.ts';
import type { EventBus, Topic } from '../events/bus.ts';
import { kafkaSecurity, kafkaSecurityConfig } from '../events/kafka/security.ts';
import { openSqliteBus } from '../events/sqlite/bus.ts';
import type { Log } from '../core/log.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import type { Collection, OpenStore } from '../store/store.ts';

/** Which engines carry a service: a URL names a server, none means a file in DATA_DIR. */
export const engineConfig = {
  MONGODB_URL: text({
    default: '',
    secret: true,
    pattern: /^mongodb(\+srv)?:\/\/./,
    description:
      'MongoDB (replica set or sharded cluster) of the document store, with credentials if it asks for them; empty: a SQLite file in DATA_DIR.',
  }),
  MONGODB_DATABASE: text({
    default: 'agentmemory',
    pattern: /^[A-Za-z][\w-]{0,30}$/,
    description: "Beginning of the database's name; a service's is <this>_<service>.",
  }),
  MONGODB_POOL_MAX: integer({ default: 50, min: 2, max: 1_000, description: 'Connections to MongoDB at most.' }),
  MONGODB_TIMEOUT_MS: integer({
    default: 5_000,
    min: 500,
    max: 60_000,
    description: 'Time for one operation on MongoDB, its repeats included.',
  }),
  KAFKA_BROKERS: text({
    default: '',
    pattern: /^[\w.-]+:\d+(,[\w.-]+:\d+)*$/,
    description:
      'Kafka brokers of the event bus: host:port, with commas between them; empty: the SQLite file EVENTS_FILE.',
  }),
  KAFKA_TOPIC_PREFIX: text({
    default: '',
    pattern: /^[\w.-]{1,60}$/,
    description: 'Beginning of the names of topics and consumer groups.',
  }),
  KAFKA_PARTITIONS: integer({
    default: 12,
    min: 1,
    max: 1_000,
    description: 'Partitions of every topic; a topic that has another number is refused.',
  }),
  KAFKA_REPLICATION: integer({
    default: 1,
    min: 1,
    max: 9,
    description: 'Replicas of every topic that is made; 3 in production.',
  }),
  KAFKA_TIMEOUT_MS: integer({
    default: 5_000,
    min: 500,
    max: 60_000,
    description: 'Time for one request to Kafka, its repeats included.',
  }),
  ...kafkaSecurityConfig,
};
export type EngineConfig = ConfigOf<typeof engineConfig>;

interface Opening {
  settings: EngineConfig & { LEASE_MS: number };
  service: string;
  log: Log;
}

/** Drivers are loaded where they are used: a laptop starts without them. @throws StartError */
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

/** @param publishes all that this process publishes. @throws StartError */
export async function openBusEngine(
  { settings, service, log }: Opening,
  file: string,
  publishes: readonly Topic[],
): Promise<EventBus> {
  if (settings.KAFKA_BROKERS === '') return openSqliteBus(file, { log, leaseMs: settings.LEASE_MS });
  const { openKafkaBus } = await import('../events/kafka/bus.ts');
  const {
    KAFKA_BROKERS,
    KAFKA_TOPIC_PREFIX: prefix,
    KAFKA_PARTITIONS: partitions,
    KAFKA_REPLICATION: replication,
    KAFKA_TIMEOUT_MS: timeoutMs,
  } = settings;
  return openKafkaBus({
    brokers: KAFKA_BROKERS.split(','),
    prefix,
    clientId: service,
    publishes,
    partitions,
    replication,
    timeoutMs,
    log,
    security: kafkaSecurity(settings),
  });
}
