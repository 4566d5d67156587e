import {
  EventsTooLargeError,
  MOST_DEAD_LETTERS,
  tracedOf,
  type EventBus,
  type Subscription,
  type Topic,
} from '../bus.ts';
import { kafkaClient, kafkaUnavailable, type KafkaOptions } from './client.ts';
import { checkPermissions } from './permissions.ts';
import { replayDeadLetters } from './dead-letters.ts';
import { distanceOf, offsetsOf } from './offsets.ts';
import { openSender } from './sender.ts';
import { startMember } from './subscription.ts';
import { deadLetterName, groupName, prepareTopics, topicName } from './topics.ts';

const SESSION_MS = 15_000;
const CONTENT_TYPE = 'application/cloudevents+json';

/**
 * The event bus on Kafka (any broker that kafkajs 2 supports). All events of an organization are in one partition;
 * one member of a group at a time consumes a partition, and another replaces one that died after `sessionTimeoutMs`.
 * Missing topics are made first, the others are checked.
 * @throws StartError when Kafka cannot be reached, does not permit what is needed, or has a topic that is not as
 *   declared; so does `subscribe`
 */
export async function openKafkaBus(options: KafkaOptions): Promise<EventBus> {
  const { prefix, partitions, publishes, timeoutMs, log, sessionTimeoutMs = SESSION_MS } = options;
  const kafka = kafkaClient(options);
  await prepareTopics(kafka.admin(), options);
  await checkPermissions(kafka, log, { writes: publishes.map((topic) => topicName(prefix, topic)) });
  const sender = openSender(kafka, timeoutMs);
  const members = new Set<Subscription>();
  const sourceOf = (topic: Topic, group: string) => ({
    topic: topicName(prefix, topic),
    groupId: groupName(prefix, topic, group),
  });
  const deadLettersOf = (topic: Topic, group: string) => ({
    topic: deadLetterName(prefix, topic),
    groupId: `${groupName(prefix, topic, group)}.dlq`,
  });
  const consumption = { kafka, timeoutMs, sessionTimeoutMs };

  return {
    async publish(topic, events) {
      if (events.length === 0) return;
      if (!publishes.includes(topic)) throw new Error(`${topic} is not declared as published here`);
      const messages = events.map((event) => {
        const traceparent = tracedOf([event])[0]?.traceparent;
        return {
          key: event.partitionKey,
          value: event.text,
          headers: { 'content-type': CONTENT_TYPE, ...(traceparent !== undefined && { traceparent }) },
        };
      });
      const tooLarge = await sender.send(topicName(prefix, topic), messages);
      if (tooLarge.length === 0) return;
      const bytes = Math.max(...tooLarge.map(({ value }) => Buffer.byteLength(value as string)));
      throw new EventsTooLargeError(
        `An event of ${bytes} bytes is larger than Kafka accepts on ${topicName(prefix, topic)} ` +
          '(its max.message.bytes)',
        events.filter((_, i) => tooLarge.includes(messages[i]!)).map(({ id }) => id),
      );
    },
    async subscribe(topic, group, handler, settings) {
      const [source, deadLetters] = [sourceOf(topic, group), deadLettersOf(topic, group)];
      await checkPermissions(kafka, log, { reads: [source, deadLetters], writes: [deadLetters.topic] });
      const member = startMember({
        ...consumption,
        ...settings,
        ...source,
        log,
        sender,
        handler,
        concurrency: partitions,
        deadLetters: deadLetters.topic,
      });
      members.add(member);
      return member;
    },
    replay(topic, group, handler) {
      return replayDeadLetters({
        ...consumption,
        ...deadLettersOf(topic, group),
        concurrency: 1,
        group: sourceOf(topic, group).groupId,
        sender,
        handler,
        log,
      });
    },
    async backlog(topic, group) {
      const groups = [sourceOf(topic, group), deadLettersOf(topic, group)];
      const [events, deadLetters] = await offsetsOf(kafka, groups).catch((error: unknown) => {
        throw kafkaUnavailable(error);
      });
      return {
        events: distanceOf(events!),
        deadLetters: Math.min(distanceOf(deadLetters!), MOST_DEAD_LETTERS),
      };
    },
    async check() {
      const admin = kafka.admin();
      try {
        await admin.connect();
        await admin.fetchTopicMetadata({ topics: publishes.map((topic) => topicName(prefix, topic)) });
      } catch (error) {
        throw kafkaUnavailable(error);
      } finally {
        await admin.disconnect();
      }
    },
    async close() {
      await Promise.all([...members].map((member) => member.stop()));
      await sender.close();
    },
  };
}
