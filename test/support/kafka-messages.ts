import { newId } from 'platform/core/ids.ts';
import { plainKafka, withAdmin } from '../../platform/test/events/kafka-fixture.ts';

export interface KafkaMessage {
  topic: string;
  /** Empty if the message has none. */
  value: Buffer;
}

/** All messages that these topics have now. */
export const messagesInKafka = (brokers: readonly string[], topics: readonly string[]): Promise<KafkaMessage[]> =>
  withAdmin([...brokers], async (admin) => {
    const offsets = await Promise.all(
      topics.map(async (topic) => ({ topic, partitions: await admin.fetchTopicOffsets(topic) })),
    );
    /** End offsets of the partitions that are not read to their end yet. */
    const unread = new Map(
      offsets.flatMap(({ topic, partitions }) =>
        partitions
          .filter(({ low, high }) => Number(high) > Number(low))
          .map(({ partition, high }) => [`${topic}/${partition}`, Number(high)]),
      ),
    );
    if (unread.size === 0) return [];
    const groupId = `reader-${newId()}`;
    const consumer = plainKafka([...brokers]).consumer({ groupId, maxWaitTimeInMs: 100 });
    const found: KafkaMessage[] = [];
    const read = Promise.withResolvers<void>();
    await consumer.connect();
    await consumer.subscribe({ topics: [...topics], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage({ topic, partition, message }) {
        found.push({ topic, value: message.value ?? Buffer.alloc(0) });
        if (Number(message.offset) + 1 >= (unread.get(`${topic}/${partition}`) ?? Infinity))
          unread.delete(`${topic}/${partition}`);
        if (unread.size === 0) read.resolve();
        return Promise.resolve();
      },
    });
    await read.promise;
    await consumer.disconnect();
    await admin.deleteGroups([groupId]);
    return found;
  });
