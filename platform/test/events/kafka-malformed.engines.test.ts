import { openKafkaBus } from 'platform/events/kafka/bus.ts';
import { deadLetterName, topicName } from 'platform/events/kafka/topics.ts';
import { MAX_EVENT_BYTES, eventText } from 'platform/events/bus.ts';
import { eventOf } from './event-of.ts';
import {
  brokersFromEnvironment,
  contentOf,
  newPrefix,
  optionsFor,
  plainKafka,
  publishWithRetries,
  removeTopics,
} from './kafka-fixture.ts';
import { Seen } from './seen.ts';

const TOPIC = 'audit.v1';
const brokers = brokersFromEnvironment();
const options = { ...optionsFor(brokers, newPrefix()), partitions: 1 };
afterAll(() => removeTopics(brokers, options.prefix));

it('moves what is not an event to the dead letters, delivers what follows, and passes over it in a replay', async () => {
  const bus = await openKafkaBus(options);
  await publishWithRetries(bus, TOPIC, [eventOf('o', 0)]);
  const producer = plainKafka(brokers).producer();
  await producer.connect();
  // The last one has no room for the headers of a dead letter: Kafka accepts it here, and would reject it there.
  const largest = Buffer.alloc(1_048_400, 'x');
  const malformed = [Buffer.from('{"id":'), Buffer.from('null'), Buffer.from('[]'), null, largest];
  for (const value of malformed)
    await producer.send({ topic: topicName(options.prefix, TOPIC), messages: [{ value }] });
  await producer.disconnect();
  await bus.publish(TOPIC, [eventText(eventOf('o', 1))]);

  const seen = new Seen<unknown>();
  const retries = { maxAttempts: 600, retryDelayMs: 3_600_000 };
  await bus.subscribe(TOPIC, 'g', async ({ data }) => seen.add(data.n), retries);
  await seen.count(2);
  expect(seen.items).toEqual([0, 1]);
  const letters = () => contentOf(brokers, deadLetterName(options.prefix, TOPIC));
  const expected = ['{"id":', 'null', '[]', 'null', 'x'.repeat(MAX_EVENT_BYTES)];
  expect((await letters()).map(({ value }) => value)).toEqual(expected);
  expect((await letters()).at(-1)!.headers.bytes).toBe(String(largest.length));

  expect(await bus.replay(TOPIC, 'g', async ({ data }) => seen.add(data.n))).toBe(0);
  expect((await letters()).map(({ value }) => value)).toEqual([...expected, ...expected]);
  expect(seen.items).toEqual([0, 1]);
  await bus.close();
});
