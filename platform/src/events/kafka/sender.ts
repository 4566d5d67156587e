import { Partitioners, type Kafka, type Message, type Producer } from 'kafkajs';
import { withTimeout } from '../../core/with-timeout.ts';
import { rootOf, kafkaUnavailable } from './client.ts';

export interface Sender {
  /**
   * Resolves when every in-sync replica has the messages, to those that it does not have because the broker finds them too
   * large; may store them twice.
   * @throws ServiceError UNAVAILABLE within the time-out
   */
  send(topic: string, messages: Message[]): Promise<Message[]>;
  close(): Promise<void>;
}

/** A producer and what it still carries; one that failed is retired, and closed when its last send has settled. */
interface Line {
  producer: Promise<Producer>;
  inFlight: number;
  retired: boolean;
}

export function openSender(kafka: Kafka, timeoutMs: number): Sender {
  let line: Line | undefined;

  async function connect(): Promise<Producer> {
    const producer = kafka.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      allowAutoTopicCreation: false,
    });
    await producer.connect();
    return producer;
  }
  const close = ({ producer }: Line): Promise<void> =>
    producer.then((open) => open.disconnect()).catch(() => undefined);

  async function deliver(on: Line, topic: string, messages: Message[]): Promise<void> {
    on.inFlight++;
    try {
      await (await on.producer).send({ topic, messages, acks: -1, timeout: timeoutMs });
    } finally {
      // a send that was given up on may go on: kafkajs would connect again what was closed under it
      if (--on.inFlight === 0 && on.retired) void close(on);
    }
  }

  async function send(topic: string, messages: Message[]): Promise<Message[]> {
    const on = (line ??= { producer: connect(), inFlight: 0, retired: false });
    const delivery = deliver(on, topic, messages);
    try {
      await withTimeout(delivery, timeoutMs);
      return [];
    } catch (error) {
      if (rootOf(error).type === 'MESSAGE_TOO_LARGE') return sendHalves(topic, messages);
      delivery.catch(() => undefined);
      // whatever it says of itself: the next send takes new connections
      on.retired = true;
      if (on.inFlight === 0) void close(on);
      if (line === on) line = undefined;
      throw kafkaUnavailable(error);
    }
  }

  /** The broker's limit is that of a batch, so a batch is sent in parts before a message of it is blamed. */
  async function sendHalves(topic: string, messages: Message[]): Promise<Message[]> {
    if (messages.length === 1) return messages;
    const middle = Math.ceil(messages.length / 2);
    return [...(await send(topic, messages.slice(0, middle))), ...(await send(topic, messages.slice(middle)))];
  }

  return {
    send,
    async close() {
      if (line) await withTimeout(close(line), timeoutMs).catch(() => undefined);
    },
  };
}
