import { Partitioners, type Kafka, type Message, type Producer } from 'kafkajs';
import { withTimeout } from '../../core/with-timeout.ts';
import { rootOf, kafkaUnavailable } from './client.ts';

export interface Sender {
  /**
   * Resolves when every in-sync replica has the messages, to those that the broker rejected as too large. A message
   * may be stored twice.
   * @throws ServiceError UNAVAILABLE within the time-out
   */
  send(topic: string, messages: Message[]): Promise<Message[]>;
  close(): Promise<void>;
}

/** A producer and its pending sends. After an error it is retired, and closed when its last send has settled. */
interface SharedProducer {
  producer: Promise<Producer>;
  pending: number;
  retired: boolean;
}

export function openSender(kafka: Kafka, timeoutMs: number): Sender {
  let current: SharedProducer | undefined;

  async function connect(): Promise<Producer> {
    const producer = kafka.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      allowAutoTopicCreation: false,
    });
    await producer.connect();
    return producer;
  }
  const close = ({ producer }: SharedProducer): Promise<void> =>
    producer.then((open) => open.disconnect()).catch(() => undefined);

  async function deliver(shared: SharedProducer, topic: string, messages: Message[]): Promise<void> {
    shared.pending++;
    try {
      await (await shared.producer).send({ topic, messages, acks: -1, timeout: timeoutMs });
    } finally {
      // Not closed earlier: a send that timed out may still run, and kafkajs would connect the closed producer again.
      if (--shared.pending === 0 && shared.retired) void close(shared);
    }
  }

  async function send(topic: string, messages: Message[]): Promise<Message[]> {
    const shared = (current ??= { producer: connect(), pending: 0, retired: false });
    const delivery = deliver(shared, topic, messages);
    try {
      await withTimeout(delivery, timeoutMs);
      return [];
    } catch (error) {
      if (rootOf(error).type === 'MESSAGE_TOO_LARGE') return sendHalves(topic, messages);
      delivery.catch(() => undefined);
      // The next send opens new connections, whatever state kafkajs reports for these.
      shared.retired = true;
      if (shared.pending === 0) void close(shared);
      if (current === shared) current = undefined;
      throw kafkaUnavailable(error);
    }
  }

  /** The broker's limit is for a batch, so the batch is halved until the messages that are too large are single. */
  async function sendHalves(topic: string, messages: Message[]): Promise<Message[]> {
    if (messages.length === 1) return messages;
    const middle = Math.ceil(messages.length / 2);
    return [...(await send(topic, messages.slice(0, middle))), ...(await send(topic, messages.slice(middle)))];
  }

  return {
    send,
    async close() {
      if (current) await withTimeout(close(current), timeoutMs).catch(() => undefined);
    },
  };
}
