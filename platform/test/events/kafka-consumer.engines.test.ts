import { eventText, type EventBus } from 'platform/events/bus.ts';
import { openKafkaBus } from 'platform/events/kafka/bus.ts';
import { kafkaClient } from 'platform/events/kafka/client.ts';
import { consume } from 'platform/events/kafka/consumer.ts';
import { groupName, topicName } from 'platform/events/kafka/topics.ts';
import { startKafka, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { eventOf } from './event-of.ts';
import { newPrefix, optionsFor, publishWithRetries, withAdmin } from './kafka-fixture.ts';
import { tcpProxy, type TcpProxy } from '../rpc/tcp-proxy.ts';
import { Seen } from './seen.ts';

const TOPIC = 'audit.v1';
const SESSION_MS = 1_000;
const EVENTS = 60;
/** API key of a JoinGroup request; it follows the length, an int32. */
const JOIN_GROUP = 11;

describe('a consumer that is given up before it has joined its group', () => {
  let server: PrivateServer;
  let proxy: TcpProxy;
  /** The connections that have sent a JoinGroup request: one for each consumer. */
  const joiners = new Seen<object>();
  beforeAll(async () => {
    server = await startKafka();
    proxy = await tcpProxy(server.port, (bytes, connection) => {
      if (bytes.length >= 6 && bytes.readInt16BE(4) === JOIN_GROUP && !joiners.items.includes(connection))
        joiners.add(connection);
    });
    // Sessions so short that the consumer is given up while kafkajs still tries to connect.
    await server.restart({
      args: [`advertised.listeners=PLAINTEXT://127.0.0.1:${proxy.port}`, `group.min.session.timeout.ms=${SESSION_MS}`],
    });
  });
  afterAll(async () => {
    await server.stop();
    proxy.close();
  });

  /** A broker rejects some joins until it has had its first group. */
  async function joinOnce(bus: EventBus): Promise<void> {
    const received = new Seen<unknown>();
    await publishWithRetries(bus, TOPIC, [eventOf('o', 0)]);
    const member = await bus.subscribe(TOPIC, 'first', async (event) => received.add(event), {
      maxAttempts: 1,
      retryDelayMs: 1,
    });
    await received.count(1);
    await member.stop();
  }

  it('gets no partition when it joins later: its successor receives every message', async () => {
    const brokers = [`127.0.0.1:${proxy.port}`];
    const options = optionsFor(brokers, newPrefix());
    const bus = await openKafkaBus(options);
    await joinOnce(bus);
    const stopping = new AbortController();
    const [givenUp, received] = [new Seen<unknown>(), new Seen<string>()];
    const consumption = {
      topic: topicName(options.prefix, TOPIC),
      groupId: groupName(options.prefix, TOPIC, 'g'),
      sessionTimeoutMs: SESSION_MS,
      concurrency: 3,
      signal: stopping.signal,
      // Longer than the consumer is given: kafkajs still waits for its first answer then.
      kafka: kafkaClient({ ...options, timeoutMs: 20_000 }),
      timeoutMs: 500,
    };
    const stable = () =>
      withAdmin(
        brokers,
        async (admin) => (await admin.describeGroups([consumption.groupId])).groups[0]?.state === 'Stable',
      );

    proxy.mute();
    await expect(consume({ ...consumption, handle: async (message) => (givenUp.add(message), true) })).rejects.toThrow(
      /^no activity/,
    );
    const before = joiners.items.length;
    proxy.unmute();
    await joiners.count(before + 1);
    const successor = (async () => {
      while (!stopping.signal.aborted)
        await consume({
          ...consumption,
          handle: async ({ value }) => (received.add(JSON.parse(String(value)).id), true),
        }).catch(() => undefined);
    })();

    for (let round = 0; round < 3; round++) {
      while (!(await stable()));
      const events = Array.from({ length: EVENTS }, (_, n) => eventOf(`organization-${n}`, n));
      await bus.publish(TOPIC, events.map(eventText));
      await received.until((ids) => events.every(({ id }) => ids.includes(id)));
    }
    expect(givenUp.items).toEqual([]);
    stopping.abort();
    await successor;
    await bus.close();
  });
});
