import { openKafkaBus } from 'platform/events/kafka.ts';
import { busSuite } from './bus-suite.ts';
import { brokersFromEnvironment, deadLetters, newPrefix, optionsFor, removeTopics } from './kafka-fixture.ts';

const brokers = brokersFromEnvironment();
// the topics are those of the whole file: to make them takes longer than a test
const prefix = newPrefix();
const options = optionsFor(brokers, prefix);
afterAll(() => removeTopics(brokers, prefix));

busSuite('Kafka', async () => ({
  open: () => openKafkaBus(options),
  child: ['kafka', JSON.stringify({ ...options, log: undefined })],
  deadLetters: (topic, group) => deadLetters(brokers, prefix, topic, group),
  remove: async () => undefined,
}));
