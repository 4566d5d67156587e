import type { Kafka } from 'kafkajs';

interface Offsets {
  /** Of the first message that the group has not handled, of those that are kept. */
  next: bigint;
  /** The one after the last message that is there now. */
  end: bigint;
}

/** Of each group, those of every partition of its topic. */
export async function offsetsOf(
  kafka: Pick<Kafka, 'admin'>,
  groups: readonly { topic: string; groupId: string }[],
): Promise<Offsets[][]> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    return await Promise.all(
      groups.map(async ({ topic, groupId }) => {
        const [stored, [kept]] = await Promise.all([
          admin.fetchTopicOffsets(topic),
          admin.fetchOffsets({ groupId, topics: [topic] }),
        ]);
        const committed = new Map(kept!.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
        return stored.map(({ partition, low, high }) => {
          // a group that has committed nothing has -1
          const [first, own] = [BigInt(low), committed.get(partition) ?? -1n];
          return { next: own > first ? own : first, end: BigInt(high) };
        });
      }),
    );
  } finally {
    await admin.disconnect();
  }
}

/** How many messages lie between. */
export const distanceOf = (offsets: readonly Offsets[]): number =>
  Number(offsets.reduce((sum, { next, end }) => sum + (end > next ? end - next : 0n), 0n));
