import { TOPICS } from 'platform/events/bus.ts';
import { openKafkaBus } from 'platform/events/kafka/bus.ts';
import { busSuite } from './bus-suite.ts';
import { eventOf } from './event-of.ts';
import {
  brokersFromEnvironment,
  deadLetters,
  newPrefix,
  optionsFor,
  removeTopics,
  publishWithRetries,
} from './kafka-fixture.ts';

const brokers = brokersFromEnvironment();
// All tests share these topics: to make topics takes longer than a test.
const prefix = newPrefix();
const options = optionsFor(brokers, prefix);
beforeAll(async () => {
  const bus = await openKafkaBus(options);
  // On every partition, so that the tests find leaders elected.
  for (const topic of TOPICS)
    await publishWithRetries(
      bus,
      topic,
      Array.from({ length: 50 }, (_, n) => eventOf(`first-${n}`, n)),
    );
  await bus.close();
});
afterAll(() => removeTopics(brokers, prefix));

busSuite('Kafka', async () => ({
  open: () => openKafkaBus(options),
  child: ['kafka', JSON.stringify({ ...options, sessionTimeoutMs: 6_000, log: undefined })],
  deadLetters: (topic, group) => deadLetters(brokers, prefix, topic, group),
  remove: async () => undefined,
}));
