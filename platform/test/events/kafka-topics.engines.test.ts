import { setTimeout as delay } from 'node:timers/promises';
import { ConfigResourceTypes } from 'kafkajs';
import {
  DEAD_LETTER_RETENTION_MS,
  MAX_EVENT_BYTES,
  RETENTION_MS,
  TOPICS,
  eventText,
  type CloudEvent,
  type Topic,
} from 'platform/events/bus.ts';
import { openKafkaBus } from 'platform/events/kafka/bus.ts';
import { StartError } from 'platform/core/start-error.ts';
import { freePort } from '../../../dev-servers/src/ports.ts';
import { startKafka, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { within } from '../awake-time.ts';
import { eventOf } from './event-of.ts';
import { brokersFromEnvironment, contentOf, newPrefix, optionsFor, removeTopics, withAdmin } from './kafka-fixture.ts';

const brokers = brokersFromEnvironment();
function largestEvent(organizationId: string, n: number): CloudEvent {
  const event = eventOf(organizationId, n);
  const textOf = (text: string): CloudEvent => ({ ...event, data: { ...event.data, text } });
  return textOf('x'.repeat(MAX_EVENT_BYTES - Buffer.byteLength(JSON.stringify(textOf('')))));
}

/** The message of the StartError, which must come within 15 seconds. */
async function startError(given: Partial<Parameters<typeof openKafkaBus>[0]>): Promise<string> {
  const opening = openKafkaBus({ ...optionsFor(brokers, newPrefix()), ...given });
  const error = await within(
    15_000,
    opening.then(
      () => undefined,
      (reason: unknown) => reason,
    ),
  );
  expect(error).toBeInstanceOf(StartError);
  return (error as StartError).message;
}

describe('the topics of the event bus on Kafka', () => {
  const prefix = newPrefix();
  const options = optionsFor(brokers, prefix);
  afterAll(() => removeTopics(brokers, prefix));
  const configOf = (topic: string) =>
    withAdmin(brokers, async (admin) => {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
      });
      return Object.fromEntries(
        resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]),
      );
    });
  async function setConfig(name: string, config: Record<string, string>): Promise<void> {
    const configEntries = Object.entries(config).map(([entry, value]) => ({ name: entry, value }));
    await withAdmin(brokers, (admin) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [{ type: ConfigResourceTypes.TOPIC, name, configEntries }],
      }),
    );
    // The controller has the new value; wait until the broker has it as well.
    for (
      let known = await configOf(name);
      configEntries.some((entry) => known[entry.name] !== entry.value);
      known = await configOf(name)
    );
  }

  it('are made as declared by the first of several processes that start at the same moment', async () => {
    const buses = await Promise.all(Array.from({ length: 4 }, () => openKafkaBus(options)));
    await Promise.all(buses.map((bus) => bus.close()));
    const made = await withAdmin(
      brokers,
      async (admin) =>
        (
          await admin.fetchTopicMetadata({
            topics: TOPICS.flatMap((topic) => [`${prefix}${topic}`, `${prefix}${topic}.dlq`]),
          })
        ).topics,
    );
    expect(
      Object.fromEntries(made.map(({ name, partitions }) => [name.slice(prefix.length), partitions.length])),
    ).toEqual(
      Object.fromEntries(
        TOPICS.flatMap((topic) => [
          [topic, 3],
          [`${topic}.dlq`, 1],
        ]),
      ),
    );
    for (const topic of TOPICS) {
      expect(Number((await configOf(`${prefix}${topic}`))['retention.ms'])).toBe(RETENTION_MS[topic]);
      expect(Number((await configOf(`${prefix}${topic}.dlq`))['retention.ms'])).toBe(DEAD_LETTER_RETENTION_MS);
    }
  });

  it('make the start fail with fewer or more partitions than declared', async () => {
    for (const partitions of [2, 4]) {
      expect(await startError({ prefix, partitions })).toBe(
        `The Kafka topic ${prefix}agent.execution.v1 has 3 partitions, and ${partitions} are declared (KAFKA_PARTITIONS)`,
      );
    }
  });

  it('make the start fail with another retention than declared', async () => {
    const set = (value: number) => setConfig(`${prefix}audit.v1`, { 'retention.ms': String(value) });
    await set(3_600_000);
    expect(await startError({ prefix })).toBe(
      `The Kafka topic ${prefix}audit.v1 has retention.ms=3600000, and 2592000000 is declared`,
    );
    await set(RETENTION_MS['audit.v1']);
    await (await openKafkaBus(options)).close();
  });

  it('keep dead letters as long as declared, or make the start fail', async () => {
    const own = `${prefix}own.`;
    const declared = { ...options, prefix: own, deadLetterRetentionMs: 86_400_000 };
    await (await openKafkaBus(declared)).close();
    expect(Number((await configOf(`${own}audit.v1.dlq`))['retention.ms'])).toBe(86_400_000);
    expect(await startError({ prefix: own })).toBe(
      `The Kafka topic ${own}agent.execution.v1.dlq has retention.ms=86400000, and 2592000000 is declared`,
    );
  });

  it('accept hundreds of the largest events at once, and such events as dead letters', async () => {
    const largest = Array.from({ length: 200 }, (_, n) => largestEvent('o', n));
    expect(new Set(largest.map((event) => Buffer.byteLength(JSON.stringify(event))))).toEqual(
      new Set([MAX_EVENT_BYTES]),
    );
    const bus = await openKafkaBus({ ...options, timeoutMs: 20_000 });
    await bus.publish('audit.v1', largest.map(eventText));
    const buried = largest.slice(0, 3);
    const given = new Set<string>();
    const member = await bus.subscribe(
      'audit.v1',
      'largest',
      async ({ id }) => {
        given.add(id);
        if (buried.some((event) => event.id === id)) throw new Error('x'.repeat(2_000));
      },
      { maxAttempts: 1, retryDelayMs: 1 },
    );
    while (given.size < largest.length) await delay(10);
    await member.stop();
    const replayed: CloudEvent[] = [];
    expect(await bus.replay('audit.v1', 'largest', async (event) => void replayed.push(event))).toBe(buried.length);
    expect(replayed).toEqual(buried);
    await bus.close();
  });

  it('make the start fail when they would not accept the largest event', async () => {
    const set = (value: number) =>
      setConfig(`${prefix}audit.v1.dlq`, {
        'retention.ms': String(DEAD_LETTER_RETENTION_MS),
        'max.message.bytes': String(value),
      });
    await set(100_000);
    expect(await startError({ prefix })).toBe(
      `The Kafka topic ${prefix}audit.v1.dlq has max.message.bytes=100000, and at least 131072 are needed`,
    );
    await set(131_072);
    await (await openKafkaBus(options)).close();
  });

  it('store each event as a CloudEvent with its partition key', async () => {
    const bus = await openKafkaBus(options);
    const published = Array.from({ length: 5 }, (_, n) => eventOf('one organization', n));
    await bus.publish('memory.change.v1', published.map(eventText));
    await bus.close();
    const partitions = await Promise.all(
      [0, 1, 2].map((partition) => contentOf(brokers, `${prefix}memory.change.v1`, partition)),
    );
    const stored = partitions.filter((messages) => messages.length > 0);
    expect(stored).toHaveLength(1);
    expect(stored[0]!.map(({ value }) => JSON.parse(value))).toEqual(published);
    expect(stored[0]![0]!.headers).toEqual({ 'content-type': 'application/cloudevents+json' });
  });

  it('accept events that are too large only together; one that is too large alone is reported and the others are stored', async () => {
    const bus = await openKafkaBus(options);
    const topic: Topic = 'agent.execution.v1';
    const sized = (n: number, length: number) => ({ ...eventOf('o', n), data: { n, text: 'x'.repeat(length) } });
    const events = Array.from({ length: 5 }, (_, n) => sized(n, 400_000));
    await bus.publish(topic, events.map(eventText));
    const tooLarge = sized(9, 1_200_000);
    await expect(bus.publish(topic, [tooLarge, sized(5, 1)].map(eventText))).rejects.toMatchObject({
      reason: 'INTERNAL',
      ids: [tooLarge.id],
      message: expect.stringMatching(
        /^An event of 12\d{5} bytes is larger than Kafka accepts on .*agent\.execution\.v1/,
      ),
    });
    await bus.close();
    const stored = (
      await Promise.all([0, 1, 2].map((partition) => contentOf(brokers, `${prefix}${topic}`, partition)))
    ).flat();
    expect(stored.map(({ value }) => JSON.parse(value).data.n)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('need at least as many brokers as replicas are declared', async () => {
    expect(await startError({ replication: 3 })).toMatch(/^Kafka at \S+ cannot be used: .*replication/i);
  });
});

describe('a Kafka that cannot be used', () => {
  let server: PrivateServer;
  beforeAll(async () => {
    server = await startKafka({
      args: [
        'authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'allow.everyone.if.no.acl.found=true',
      ],
    });
  });
  afterAll(() => server.stop());

  it('makes the start fail with one sentence when nothing listens there', async () => {
    expect(await startError({ brokers: ['127.0.0.1:1'] })).toBe(
      'Kafka at 127.0.0.1:1 cannot be used: Connection error: connect ECONNREFUSED 127.0.0.1:1',
    );
    expect(await startError({ brokers: ['no-such-host.invalid:9092'] })).toMatch(
      /^Kafka at no-such-host\.invalid:9092 cannot be used: Connection error: getaddrinfo (ENOTFOUND|EAI_AGAIN)/,
    );
  });

  it('makes the start fail with one sentence when a permission is missing', async () => {
    const prefix = newPrefix();
    await withAdmin([server.url], (admin) =>
      admin.createAcls({
        acl: [
          {
            resourceType: 2,
            resourceName: prefix,
            resourcePatternType: 4,
            principal: 'User:ANONYMOUS',
            host: '*',
            operation: 5,
            permissionType: 2,
          },
        ],
      }),
    );
    expect(await startError({ brokers: [server.url], prefix })).toMatch(
      /^Kafka does not let this service DESCRIBE its topics \(.*\)$/,
    );
  });

  it('makes the start fail with one sentence when it does not answer', async () => {
    await server.pause();
    expect(await startError({ brokers: [server.url], timeoutMs: 3_000 })).toBe(
      `Kafka at ${server.url} cannot be used: it does not answer`,
    );
    server.resume();
  });

  it('makes the start fail with one sentence when it expects credentials', async () => {
    const port = await freePort();
    const jaas =
      'listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_app="secret";';
    const listeners = `PLAINTEXT://127.0.0.1:${server.port},CONTROLLER://127.0.0.1:${server.port + 1},SASL_PLAINTEXT://127.0.0.1:${port}`;
    await server.restart({
      args: [
        'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT',
        `listeners=${listeners}`,
        `advertised.listeners=${listeners.replace(/,CONTROLLER[^,]*/, '')}`,
        'sasl.enabled.mechanisms=PLAIN',
        jaas,
      ],
    });
    expect(await startError({ brokers: [`127.0.0.1:${port}`] })).toBe(
      `Kafka at 127.0.0.1:${port} cannot be used: ` +
        'it closes the connection, as a broker does that expects another KAFKA_TLS or KAFKA_SASL_MECHANISM',
    );
  });
});
