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
  untilTaken,
} from './kafka-fixture.ts';

const brokers = brokersFromEnvironment();
// the topics are those of the whole file: to make them takes longer than a test
const prefix = newPrefix();
const options = optionsFor(brokers, prefix);
beforeAll(async () => {
  const bus = await openKafkaBus(options);
  // on every partition
  for (const topic of TOPICS)
    await untilTaken(
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
