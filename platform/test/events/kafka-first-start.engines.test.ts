import { Writable } from 'node:stream';
import pino from 'pino';
import type { CloudEvent, EventBus } from 'platform/events/bus.ts';
import { openKafkaBus } from 'platform/events/kafka/bus.ts';
import { startKafka, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { eventOf } from './event-of.ts';
import { newPrefix, optionsFor, publishWithRetries } from './kafka-fixture.ts';
import { Seen } from './seen.ts';

/** pino's level of a warning. */
const WARN = 40;

let server: PrivateServer;
let bus: EventBus;
afterEach(async () => {
  await bus.close();
  await server.stop();
});

/** Subscribes on a new Kafka that has never had a consumer group; resolves to what is logged and received. */
async function firstConsumer(args: readonly string[] = []) {
  server = await startKafka({ args });
  const [logged, received] = [new Seen<{ level: number; msg: string }>(), new Seen<unknown>()];
  const log = pino(
    { level: 'trace' },
    new Writable({ write: (line, _, done) => (logged.add(JSON.parse(line)), done()) }),
  );
  bus = await openKafkaBus({ ...optionsFor([server.url], newPrefix()), log });
  const handler = async ({ data }: CloudEvent): Promise<void> => received.add(data.n);
  await bus.subscribe('audit.v1', 'g', handler, { maxAttempts: 1, retryDelayMs: 1 });
  return { logged, received, warnings: () => logged.items.filter(({ level }) => level >= WARN) };
}

it('the first consumer waits without a warning until Kafka has made the coordinator of its group', async () => {
  const { received, warnings } = await firstConsumer();
  await publishWithRetries(bus, 'audit.v1', [eventOf('o', 1)]);
  await received.count(1);
  expect(warnings()).toEqual([]);
});

it('a Kafka that cannot make a coordinator is logged as a warning', async () => {
  // three replicas of the topic of offsets, on a single broker
  const { logged, warnings } = await firstConsumer(['offsets.topic.replication.factor=3']);
  await logged.until(() => warnings().length > 0);
  expect(warnings()[0]!.msg).toBe('the event consumer ended; a new one starts');
});
