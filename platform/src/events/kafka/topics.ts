import { setTimeout as delay } from 'node:timers/promises';
import kafkajs, { type Admin } from 'kafkajs';
import { StartError } from '../../core/start-error.ts';
import { DEAD_LETTER_RETENTION_MS, MAX_EVENT_BYTES, RETENTION_MS, TOPICS, type Topic } from '../bus.ts';
import { withTimeout } from '../../core/with-timeout.ts';
import { rootOf, type KafkaOptions } from './client.ts';

export const topicName = (prefix: string, topic: Topic): string => `${prefix}${topic}`;
export const deadLetterName = (prefix: string, topic: Topic): string => `${prefix}${topic}.dlq`;
/** A consumer group of Kafka for a group's offsets in one topic. */
export const groupName = (prefix: string, topic: Topic, group: string): string => `${prefix}${group}.${topic}`;

/** For the whole preparation of topics at the start, unless a single request may take longer. */
const START_MS = 10_000;
const POLL_MS = 50;
/** Kafka's default for max.message.bytes, set because a broker may be configured otherwise. */
const MESSAGE_BYTES = 1_048_588;
/** Leaves room for what Kafka and a dead letter add to an event. */
const MIN_MESSAGE_BYTES = 2 * MAX_EVENT_BYTES;

interface DeclaredTopic {
  topic: string;
  partitions: number;
  retentionMs: number;
}

/**
 * Makes missing topics and checks the others.
 * @throws StartError when one is not as declared, or Kafka cannot be used
 */
export async function prepareTopics(admin: Admin, options: KafkaOptions): Promise<void> {
  const { brokers, prefix, partitions, deadLetterRetentionMs = DEAD_LETTER_RETENTION_MS } = options;
  const declared = TOPICS.flatMap((topic): DeclaredTopic[] => [
    { topic: topicName(prefix, topic), partitions, retentionMs: RETENTION_MS[topic] },
    // One partition: dead letters are few, and are replayed in order.
    { topic: deadLetterName(prefix, topic), partitions: 1, retentionMs: deadLetterRetentionMs },
  ]);
  const prepared = makeAndCheck(admin, declared, options);
  try {
    await withTimeout(prepared, Math.max(START_MS, options.timeoutMs));
  } catch (cause) {
    prepared.catch(() => undefined);
    if (cause instanceof StartError) throw cause;
    throw new StartError(`Kafka at ${brokers.join(',')} cannot be used: ${reasonOf(cause)}`, { cause });
  } finally {
    void admin.disconnect().catch(() => undefined);
  }
}

async function makeAndCheck(
  admin: Admin,
  declared: readonly DeclaredTopic[],
  { replication, timeoutMs }: KafkaOptions,
): Promise<void> {
  await admin.connect();
  const present = new Set(await admin.listTopics());
  const missing = declared.filter(({ topic }) => !present.has(topic));
  if (missing.length > 0) {
    // It is no error when another process makes the same topic at this moment.
    await withPermission(
      'CREATE',
      missing,
      admin.createTopics({
        timeout: timeoutMs,
        waitForLeaders: false,
        topics: missing.map((plan) => ({
          topic: plan.topic,
          numPartitions: plan.partitions,
          replicationFactor: replication,
          configEntries: [
            { name: 'retention.ms', value: String(plan.retentionMs) },
            { name: 'max.message.bytes', value: String(MESSAGE_BYTES) },
            ...(replication >= 3 ? [{ name: 'min.insync.replicas', value: '2' }] : []),
          ],
        })),
      }),
    );
  }
  const partitionsOf = await withPermission(
    'DESCRIBE',
    declared,
    partitionCounts(
      admin,
      declared.map(({ topic }) => topic),
    ),
  );
  const { resources } = await withPermission(
    'DESCRIBE_CONFIGS of',
    declared,
    admin.describeConfigs({
      includeSynonyms: false,
      resources: declared.map(({ topic }) => ({
        type: kafkajs.ConfigResourceTypes.TOPIC,
        name: topic,
        configNames: ['retention.ms', 'max.message.bytes'],
      })),
    }),
  );
  for (const { topic, partitions, retentionMs } of declared) {
    const found = partitionsOf.get(topic);
    if (found !== partitions)
      throw new StartError(
        `The Kafka topic ${topic} has ${found} partitions, and ${partitions} are declared (KAFKA_PARTITIONS)`,
      );
    const entries = resources.find(({ resourceName }) => resourceName === topic)?.configEntries;
    const valueOf = (name: string) => entries?.find(({ configName }) => configName === name)?.configValue;
    const [kept, taken] = [valueOf('retention.ms'), valueOf('max.message.bytes')];
    if (Number(kept) !== retentionMs)
      throw new StartError(`The Kafka topic ${topic} has retention.ms=${kept}, and ${retentionMs} is declared`);
    if (!(Number(taken) >= MIN_MESSAGE_BYTES))
      throw new StartError(
        `The Kafka topic ${topic} has max.message.bytes=${taken}, and at least ${MIN_MESSAGE_BYTES} are needed`,
      );
  }
}

/** @throws StartError when Kafka does not permit the operation on one of the topics */
const withPermission = <T>(operation: string, on: readonly DeclaredTopic[], work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    const { type, errors } = rootOf(error) as { type?: string; errors?: { type?: string }[] };
    if (!/_AUTHORIZATION_FAILED$/.test(type ?? errors?.[0]?.type ?? '')) throw error;
    throw new StartError(
      `Kafka does not let this service ${operation} its topics (${on.map(({ topic }) => topic).join(', ')})`,
    );
  });

/** Waits for topics that were just made: each broker learns of them a little later. */
async function partitionCounts(admin: Admin, topics: string[]): Promise<Map<string, number>> {
  const deadline = performance.now() + START_MS;
  for (;;) {
    try {
      const { topics: found } = await admin.fetchTopicMetadata({ topics });
      return new Map(found.map(({ name, partitions }) => [name, partitions.length]));
    } catch (error) {
      if (
        !['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE'].includes(rootOf(error).type ?? '') ||
        performance.now() > deadline
      )
        throw error;
    }
    await delay(POLL_MS);
  }
}

function reasonOf(error: unknown): string {
  const root = rootOf(error) as ReturnType<typeof rootOf> & { code?: string; errors?: Error[] };
  const message = (root.errors?.[0] ?? root).message.replace(/\s+/g, ' ');
  if (root.type === 'UNSUPPORTED_SASL_MECHANISM')
    return 'it does not support the mechanism that KAFKA_SASL_MECHANISM names';
  if (root.name === 'KafkaJSSASLAuthenticationError') return 'it rejects the user name or password (KAFKA_USERNAME)';
  if (/CERT|UNABLE_TO/.test(root.code ?? '')) {
    const why = message.replace(/^Connection error: |; if the root CA.*/g, '');
    return `its certificate is not trusted (${why}); set KAFKA_TLS_CA_FILE to the certificate of its authority`;
  }
  if (/^Closed connection$|disconnected before secure TLS/.test(message))
    return 'it closes the connection, as a broker does that expects another KAFKA_TLS or KAFKA_SASL_MECHANISM';
  return /not connected|timed out|no answer/i.test(message) ? 'it does not answer' : message;
}
