import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import type { Admin } from 'kafkajs';
import { TOPICS, type CloudEvent, type Topic } from 'platform/events/bus.ts';
import { unpackEvents, type Block } from 'platform/events/sqlite/blocks.ts';
import { deadLetterName, groupName, topicName } from 'platform/events/kafka/topics.ts';
import { withAdmin } from '../../platform/test/events/kafka-fixture.ts';
import { messagesInKafka } from './kafka-messages.ts';
import type { TenantRef } from './organization-records.ts';
import type { RunningStack } from './stack.ts';

const AUDIT_GROUP = 'auth-audit';

export interface EventRecords {
  /** Each event once: the bus delivers at least once, and consumers drop repeats by the event's id. */
  events: Record<Topic, CloudEvent[]>;
  /** True when the audit consumer has read its whole topic. */
  auditCaughtUp: boolean;
  /** Number of dead letters of all topics and organizations. */
  deadLetters: number;
}

/** The events of the organization on the bus, by topic. */
export const eventsOf = (stack: RunningStack, tenant: TenantRef): Promise<EventRecords> =>
  stack.env.KAFKA_BROKERS ? eventsInKafka(stack, tenant) : Promise.resolve(eventsInFile(stack, tenant));

/** True when the audit consumer has read its whole topic, and its place can be read. */
export async function isAuditConsumerCaughtUp(stack: RunningStack): Promise<boolean> {
  if (!stack.env.KAFKA_BROKERS) return eventsInFile(stack, { organizationId: '', token: '' }).auditCaughtUp;
  return withAdmin(brokersOf(stack), (admin) => isCaughtUpInKafka(admin, stack)).catch((error: unknown) => {
    // a broker that has just started does not know the group yet
    if ((error as { retriable?: boolean }).retriable) return false;
    throw error;
  });
}

const brokersOf = ({ env }: RunningStack): string[] => (env.KAFKA_BROKERS as string).split(',');

async function isCaughtUpInKafka(admin: Admin, { env }: RunningStack): Promise<boolean> {
  const prefix = env.KAFKA_TOPIC_PREFIX ?? '';
  const topic = topicName(prefix, 'audit.v1');
  const ends = await admin.fetchTopicOffsets(topic);
  const [committed] = await admin.fetchOffsets({
    groupId: groupName(prefix, 'audit.v1', AUDIT_GROUP),
    topics: [topic],
  });
  return ends.every(
    ({ partition, high }) =>
      Number(high) === 0 ||
      Number(committed?.partitions.find((one) => one.partition === partition)?.offset) >= Number(high),
  );
}

function eventsInFile({ folder }: RunningStack, { organizationId }: TenantRef): EventRecords {
  const db = new DatabaseSync(join(folder, 'events.db'), { readOnly: true, timeout: 5_000 });
  try {
    const blocks = db.prepare('SELECT topic, count, events FROM block ORDER BY last').all() as unknown as (Block & {
      topic: Topic;
    })[];
    const found = blocks
      .flatMap((block) => unpackEvents(block).map((event): [Topic, string] => [block.topic, event]))
      .filter(([, event]) => (JSON.parse(event) as CloudEvent).organizationid === organizationId);
    const unread = db
      .prepare(
        `SELECT count(*) AS n FROM block WHERE topic = 'audit.v1'
          AND last > (SELECT seq FROM progress WHERE topic = 'audit.v1' AND "group" = '${AUDIT_GROUP}')`,
      )
      .get();
    const deadLetters = db.prepare('SELECT count(*) AS n FROM dead_letter').get();
    return {
      events: byTopic(found),
      auditCaughtUp: unread?.n === 0,
      deadLetters: Number(deadLetters?.n),
    };
  } finally {
    db.close();
  }
}

const eventsInKafka = (stack: RunningStack, { organizationId }: TenantRef): Promise<EventRecords> =>
  withAdmin(brokersOf(stack), async (admin) => {
    const prefix = stack.env.KAFKA_TOPIC_PREFIX ?? '';
    const auditCaughtUp = await isCaughtUpInKafka(admin, stack);
    const letters = await Promise.all(TOPICS.map((topic) => admin.fetchTopicOffsets(deadLetterName(prefix, topic))));
    const messages = await messagesInKafka(
      brokersOf(stack),
      TOPICS.map((topic) => topicName(prefix, topic)),
    );
    const found = messages
      .map(({ topic, value }): [Topic, string] => [topic.slice(prefix.length) as Topic, value.toString()])
      .filter(([, event]) => (JSON.parse(event) as CloudEvent).organizationid === organizationId);
    return {
      events: byTopic(found),
      auditCaughtUp,
      deadLetters: letters.flat().reduce((sum, { high }) => sum + Number(high), 0),
    };
  });

function byTopic(found: readonly [Topic, string][]): Record<Topic, CloudEvent[]> {
  const events: Record<Topic, CloudEvent[]> = {
    'agent.execution.v1': [],
    'audit.v1': [],
    'credits.ledger.v1': [],
    'memory.change.v1': [],
  };
  const seen = new Set<string>();
  for (const [topic, text] of found) {
    const event = JSON.parse(text) as CloudEvent;
    if (!seen.has(event.id)) events[topic].push(event);
    seen.add(event.id);
  }
  return events;
}
