import { ServiceError } from '../../core/errors.ts';
import type { EventHandler } from '../bus.ts';
import { kafkaUnavailable } from './client.ts';
import { consume, type Consumption } from './consumer.ts';
import { eventOf } from './subscription.ts';

interface Replay extends Omit<Consumption, 'signal' | 'handle' | 'joined'> {
  /** The group whose dead letters are replayed; those of other groups in the topic are skipped. */
  group: string;
  handler: EventHandler;
}

/**
 * See EventBus.replay. `topic` is the topic of the dead letters; the committed offset of the consumer group `groupId`
 * says how far they were replayed.
 */
export async function replayDeadLetters({ group, handler, ...consumption }: Replay): Promise<number> {
  const { kafka, topic, groupId } = consumption;
  const { next, end } = await remainingOffsets(kafka, topic, groupId).catch((cause: unknown) => {
    throw kafkaUnavailable(cause);
  });
  if (next >= end) return 0;

  let count = 0;
  let failure: { error: unknown } | undefined;
  const finished = new AbortController();
  const fail = (error: unknown): void => {
    failure ??= { error };
    finished.abort();
  };
  await consume({
    ...consumption,
    signal: finished.signal,
    joined(partitions) {
      if (partitions.length === 0)
        fail(new ServiceError('UNAVAILABLE', 'Another process is replaying these dead letters'));
    },
    async handle(message) {
      if (String(message.headers?.group) === group) {
        try {
          await handler(eventOf(message));
        } catch (error) {
          fail(error);
          return false;
        }
        count++;
      }
      if (BigInt(message.offset) + 1n >= end) finished.abort();
      return true;
    },
  }).catch((error: unknown) => fail(kafkaUnavailable(error)));
  if (failure) throw failure.error;
  return count;
}

/** The offset to replay next, and the one after the last message that is there now. */
async function remainingOffsets(
  kafka: Consumption['kafka'],
  topic: string,
  groupId: string,
): Promise<{ next: bigint; end: bigint }> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    const [[stored], [kept]] = await Promise.all([
      admin.fetchTopicOffsets(topic),
      admin.fetchOffsets({ groupId, topics: [topic] }),
    ]);
    const [low, committed] = [BigInt(stored!.low), BigInt(kept!.partitions[0]!.offset)];
    return { next: committed > low ? committed : low, end: BigInt(stored!.high) };
  } finally {
    await admin.disconnect();
  }
}
