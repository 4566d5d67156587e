import { setTimeout as delay } from 'node:timers/promises';
import kafkajs, { type Admin } from 'kafkajs';
import { StartError } from '../start-error.ts';
import { DEAD_LETTER_RETENTION_MS, RETENTION_MS, TOPICS, type Topic } from './bus.ts';
import { inTime } from '../in-time.ts';
import { rootOf, type KafkaOptions } from './kafka-client.ts';

export const topicName = (prefix: string, topic: Topic): string => `${prefix}${topic}`;
export const deadLetterName = (prefix: string, topic: Topic): string => `${prefix}${topic}.dlq`;
/** A group's place in one topic. */
export const groupName = (prefix: string, topic: Topic, group: string): string => `${prefix}${group}.${topic}`;

/** At the start, for all of it. */
const START_MS = 7_000;
const POLL_MS = 50;

interface DeclaredTopic {
  topic: string;
  partitions: number;
  retentionMs: number;
}

/** Makes the topics that are missing, and holds the others to what is declared. @throws StartError */
export async function prepareTopics(admin: Admin, options: KafkaOptions): Promise<void> {
  const { brokers, prefix, partitions } = options;
  const declared = TOPICS.flatMap((topic): DeclaredTopic[] => [
    { topic: topicName(prefix, topic), partitions, retentionMs: RETENTION_MS[topic] },
    // one partition: they are few, and replayed in order
    { topic: deadLetterName(prefix, topic), partitions: 1, retentionMs: DEAD_LETTER_RETENTION_MS },
  ]);
  const prepared = makeAndVerify(admin, declared, options);
  try {
    await inTime(prepared, START_MS);
  } catch (cause) {
    prepared.catch(() => undefined);
    if (cause instanceof StartError) throw cause;
    throw new StartError(`Kafka at ${brokers.join(',')} cannot be used: ${explain(cause)}`, { cause });
  } finally {
    void admin.disconnect().catch(() => undefined);
  }
}

async function makeAndVerify(admin: Admin, declared: readonly DeclaredTopic[], { replication, timeoutMs }: KafkaOptions): Promise<void> {
  await admin.connect();
  const present = new Set(await admin.listTopics());
  const missing = declared.filter(({ topic }) => !present.has(topic));
  if (missing.length > 0) {
    // one that another process makes at this moment is no error
    await admin.createTopics({ timeout: timeoutMs, waitForLeaders: false, topics: missing.map((plan) => ({
      topic: plan.topic, numPartitions: plan.partitions, replicationFactor: replication,
      configEntries: [{ name: 'retention.ms', value: String(plan.retentionMs) }, ...(replication >= 3 ? [{ name: 'min.insync.replicas', value: '2' }] : [])],
    })) });
  }
  const partitionsOf = await partitionCounts(admin, declared.map(({ topic }) => topic));
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: declared.map(({ topic }) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] })) });
  for (const { topic, partitions, retentionMs } of declared) {
    const found = partitionsOf.get(topic);
    if (found !== partitions) throw new StartError(`The Kafka topic ${topic} has ${found} partitions, and ${partitions} are declared (KAFKA_PARTITIONS)`);
    const kept = resources.find(({ resourceName }) => resourceName === topic)?.configEntries.find(({ configName }) => configName === 'retention.ms')?.configValue;
    if (Number(kept) !== retentionMs) throw new StartError(`The Kafka topic ${topic} has retention.ms=${kept}, and ${retentionMs} is declared`);
  }
}

/** Waits for topics that were made just now: the brokers hear of them one by one. */
async function partitionCounts(admin: Admin, topics: string[]): Promise<Map<string, number>> {
  const deadline = performance.now() + START_MS;
  for (;;) {
    try {
      const { topics: found } = await admin.fetchTopicMetadata({ topics });
      return new Map(found.map(({ name, partitions }) => [name, partitions.length]));
    } catch (error) {
      if (!['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE'].includes(rootOf(error).type ?? '') || performance.now() > deadline) throw error;
    }
    await delay(POLL_MS);
  }
}

function explain(error: unknown): string {
  const root = rootOf(error);
  const { errors = [root] } = root as { errors?: Error[] };
  const message = errors[0]!.message.replace(/\s+/g, ' ');
  if (message === 'Closed connection') return 'it closes the connection, as one does that asks for TLS or credentials';
  return /not connected|timed out|no answer/i.test(message) ? 'it does not answer' : message;
}
