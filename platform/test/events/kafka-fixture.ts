import { Kafka, logLevel, type Admin } from 'kafkajs';
import { letIdleConnectionsSleep } from 'platform/events/kafka/idle-connections.ts';
import { TOPICS, eventText, type CloudEvent, type EventBus, type Topic } from 'platform/events/bus.ts';
import { groupName, deadLetterName } from 'platform/events/kafka/topics.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';

letIdleConnectionsSleep();

export function brokersFromEnvironment(): string[] {
  const { KAFKA_BROKERS } = process.env;
  if (!KAFKA_BROKERS) throw new Error('set KAFKA_BROKERS; npm run engines -- up prints it');
  return KAFKA_BROKERS.split(',');
}

export const newPrefix = (): string => `test-${newId()}.`;
export const plainKafka = (brokers: string[]): Kafka =>
  new Kafka({ brokers, clientId: 'test', logLevel: logLevel.NOTHING });
export const optionsFor = (brokers: string[], prefix: string) => ({
  brokers,
  prefix,
  clientId: 'test',
  publishes: TOPICS,
  partitions: 3,
  replication: 1,
  timeoutMs: 20_000,
  sessionTimeoutMs: 20_000,
  log: makeLog('test', 'silent'),
});

/** Publishes until it succeeds: a broker that just made a topic, or restarted, may not lead its partitions yet. */
export async function publishWithRetries(bus: EventBus, topic: Topic, events: readonly CloudEvent[]): Promise<void> {
  while (
    !(await bus.publish(topic, events.map(eventText)).then(
      () => true,
      () => false,
    ))
  );
}

export async function withAdmin<T>(brokers: string[], work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = plainKafka(brokers).admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

export const removeTopics = (brokers: string[], prefix: string): Promise<void> =>
  withAdmin(brokers, async (admin) => {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix));
    if (topics.length > 0) await admin.deleteTopics({ topics });
  });

/** The messages in one partition of a topic, in order. */
export async function contentOf(
  brokers: string[],
  topic: string,
  partition = 0,
): Promise<{ offset: string; value: string; headers: Record<string, string> }[]> {
  const end = await withAdmin(brokers, async (admin) =>
    Number((await admin.fetchTopicOffsets(topic)).find((each) => each.partition === partition)!.high),
  );
  const found: Awaited<ReturnType<typeof contentOf>> = [];
  if (end === 0) return found;
  const consumer = plainKafka(brokers).consumer({ groupId: `reader-${newId()}`, maxWaitTimeInMs: 50 });
  const all = Promise.withResolvers<void>();
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    async eachMessage({ message: { offset, value, headers }, partition: of }) {
      if (of !== partition) return;
      found.push({
        offset,
        value: String(value),
        headers: Object.fromEntries(Object.entries(headers ?? {}).map(([name, text]) => [name, String(text)])),
      });
      if (Number(offset) + 1 === end) all.resolve();
    },
  });
  await all.promise;
  await consumer.disconnect();
  return found;
}

/** The dead letters of the group that were not replayed. */
export async function deadLetters(
  brokers: string[],
  prefix: string,
  topic: Topic,
  group: string,
): Promise<{ id: string; error: string }[]> {
  const [name, owner] = [deadLetterName(prefix, topic), groupName(prefix, topic, group)];
  const next = await withAdmin(brokers, async (admin) =>
    Number((await admin.fetchOffsets({ groupId: `${owner}.dlq`, topics: [name] }))[0]!.partitions[0]!.offset),
  );
  return (await contentOf(brokers, name))
    .filter(({ offset, headers }) => headers.group === owner && Number(offset) >= next)
    .map(({ value, headers }) => ({ id: (JSON.parse(value) as CloudEvent).id, error: headers.error! }));
}
