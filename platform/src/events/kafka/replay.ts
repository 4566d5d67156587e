import { ServiceError } from '../../core/errors.ts';
import type { EventHandler } from '../bus.ts';
import { kafkaUnavailable } from './client.ts';
import { consume, type Consumption } from './consumer.ts';
import { eventOf } from './subscription.ts';

interface Replay extends Omit<Consumption, 'signal' | 'handle' | 'joined'> {
  /** Whose dead letters: those of others in the topic are passed over. */
  group: string;
  handler: EventHandler;
}

/** See EventBus.replay. `topic` is that of the dead letters, `groupId` the group that keeps how far they were replayed. */
export async function replayDeadLetters({ group, handler, ...consumption }: Replay): Promise<number> {
  const { kafka, topic, groupId } = consumption;
  const { next, end } = await span(kafka, topic, groupId).catch((cause: unknown) => {
    throw kafkaUnavailable(cause);
  });
  if (next >= end) return 0;

  let count = 0;
  let failure: { error: unknown } | undefined;
  const over = new AbortController();
  const fail = (error: unknown): void => {
    failure ??= { error };
    over.abort();
  };
  await consume({
    ...consumption,
    signal: over.signal,
    joined(partitions) {
      if (partitions.length === 0) fail(new ServiceError('UNAVAILABLE', 'Another process replays these dead letters'));
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
      if (BigInt(message.offset) + 1n >= end) over.abort();
      return true;
    },
  }).catch((error: unknown) => fail(kafkaUnavailable(error)));
  if (failure) throw failure.error;
  return count;
}

/** Offsets: the next to be replayed, and the one after the last that is there now. */
async function span(
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
