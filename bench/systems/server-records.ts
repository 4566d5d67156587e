import { MongoClient } from 'mongodb';
import { TOPICS } from 'platform/events/bus.ts';
import { topicName } from 'platform/events/kafka/topics.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { withAdmin } from '../../platform/test/events/kafka-fixture.ts';
import { AUDIT_ENTRIES } from '../../services/auth/src/audit/store.ts';
import { isAuditConsumerCaughtUp } from '../../test/support/event-records.ts';
import type { Stack } from '../../test/support/stack.ts';
import type { RecordCounts, Records } from './records.ts';

const WITH_OUTBOX = ['auth', 'agents', 'memory'] as const;

/** Counts records in MongoDB and Kafka. The ledger in Redis tells nobody what it has not published: `ledgers` is 0. */
export function openServerRecords(stack: Stack): Records {
  const { MONGODB_URL, MONGODB_DATABASE, KAFKA_BROKERS, KAFKA_TOPIC_PREFIX } = stack.env;
  const client = new MongoClient(MONGODB_URL!);
  const documents = (service: string, name: string): Promise<number> =>
    client.db(`${MONGODB_DATABASE}_${service}`).collection(name).countDocuments();
  return {
    async backlog() {
      const outboxes = await Promise.all(WITH_OUTBOX.map((service) => documents(service, OUTBOX.name)));
      return {
        outbox: outboxes.reduce((sum, count) => sum + count, 0),
        ledgers: 0,
        audit: (await isAuditConsumerCaughtUp(stack)) ? 0 : 1,
      };
    },
    counts: () =>
      withAdmin(KAFKA_BROKERS!.split(','), async (admin) => {
        const counts = await Promise.all(
          TOPICS.map(async (topic) => {
            const partitions = await admin.fetchTopicOffsets(topicName(KAFKA_TOPIC_PREFIX ?? '', topic));
            return [topic, partitions.reduce((sum, { high }) => sum + Number(high), 0)] as const;
          }),
        );
        const entries = await documents('auth', AUDIT_ENTRIES.name);
        return { ...Object.fromEntries(counts), 'audit entries': entries } as RecordCounts;
      }),
    oldestMs: () => undefined,
    close: () => client.close(),
  };
}
