import type { IHeaders } from 'kafkajs';
import { ServiceError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { MAX_EVENT_BYTES, parseEvent, RejectedEventError, type EventHandler } from '../bus.ts';
import { kafkaUnavailable } from './client.ts';
import { consume, type Consumption, type Received } from './consumer.ts';
import { offsetsOf } from './offsets.ts';
import type { Sender } from './sender.ts';

const ERROR_LENGTH = 1_000;

/**
 * Writes a message that the group cannot handle to the topic of dead letters. Of one that Kafka does not accept there
 * with the headers, only the first bytes are kept: no service publishes events of such a size.
 */
export async function bury(
  sender: Sender,
  deadLetters: string,
  groupId: string,
  { key, value, topic, partition, offset }: Received,
  error: unknown,
): Promise<void> {
  const headers: IHeaders = { group: groupId, topic, partition: String(partition), offset, ...errorHeader(error) };
  const tooLarge = await sender.send(deadLetters, [{ key, value, headers }]);
  if (tooLarge.length === 0) return;
  const truncated = { ...headers, bytes: String(value?.length) };
  await sender.send(deadLetters, [{ value: value?.subarray(0, MAX_EVENT_BYTES) ?? null, headers: truncated }]);
}

const errorHeader = (error: unknown) => ({ error: String(error).slice(0, ERROR_LENGTH) });

interface Replay extends Omit<Consumption, 'signal' | 'handle' | 'joined'> {
  /** The group whose dead letters are replayed; those of other groups in the topic are skipped. */
  group: string;
  sender: Sender;
  handler: EventHandler;
  log: Log;
}

/**
 * See EventBus.replay. `topic` is the topic of the dead letters; the committed offset of the consumer group `groupId`
 * says how far they were replayed. One that is rejected again is written again, after the others.
 */
export async function replayDeadLetters({ group, sender, handler, log, ...consumption }: Replay): Promise<number> {
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
  /** False when the handler rejected the event. */
  async function handleOrBuryAgain({ key, value, headers, offset }: Received): Promise<boolean> {
    try {
      await handler(parseEvent(String(value)));
      return true;
    } catch (error) {
      if (!(error instanceof RejectedEventError)) throw error;
      log.warn({ error, topic, group, offset }, 'a dead letter was rejected again');
      await sender.send(topic, [{ key, value, headers: { ...headers, ...errorHeader(error) } }]);
      return false;
    }
  }
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
          if (await handleOrBuryAgain(message)) count++;
        } catch (error) {
          fail(error);
          return false;
        }
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
  const [only] = await offsetsOf(kafka, [{ topic, groupId }]);
  return only![0]!;
}
