import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Kafka, logLevel } from 'kafkajs';
import type { ServerLocation, ServerSpec } from './server-spec.ts';

export const KAFKA_VERSION = '4.3.0';
export const kafkaFolder = (engines: string): string => join(engines, `kafka-${KAFKA_VERSION}`);
const PROBE_TIMEOUT_MS = 2_000;

const run = promisify(execFile);
const logsOf = (data: string): string => join(data, 'logs');
const propertiesOf = (data: string): string => join(data, 'server.properties');
const java = (engines: string, ...rest: string[]): string[] => [
  'java',
  '-Xmx384m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-cp',
  join(kafkaFolder(engines), '*'),
  ...rest,
];

export const kafka: ServerSpec = {
  key: 'kafka',
  name: 'Kafka',
  setting: 'KAFKA_BROKERS',
  url: (port) => `127.0.0.1:${port}`,
  async prepare(location) {
    const { engines, data } = location;
    writeFileSync(propertiesOf(data), properties(location));
    const formatted = join(data, 'formatted');
    if (existsSync(formatted)) return;
    rmSync(logsOf(data), { recursive: true, force: true });
    mkdirSync(logsOf(data));
    const [program, ...args] = java(
      engines,
      'kafka.tools.StorageTool',
      'format',
      '-t',
      clusterId(),
      '-c',
      propertiesOf(data),
    ) as [string, ...string[]];
    await run(program, args);
    writeFileSync(formatted, '');
  },
  command: ({ engines, data }) => java(engines, 'kafka.Kafka', propertiesOf(data)),
  async answers(port) {
    const client = new Kafka({
      brokers: [`127.0.0.1:${port}`],
      logLevel: logLevel.NOTHING,
      retry: { retries: 0 },
      connectionTimeout: PROBE_TIMEOUT_MS,
      requestTimeout: PROBE_TIMEOUT_MS,
    });
    const admin = client.admin();
    try {
      await admin.connect();
      await admin.fetchTopicMetadata();
      const { brokers, controller } = await admin.describeCluster();
      return brokers.length === 1 && controller !== null;
    } finally {
      await admin.disconnect();
    }
  },
};

/**
 * KRaft with broker and controller in one process. The controller accepts a killed broker again only after its old
 * session has timed out, by default after 9 s, so broker.session.timeout.ms is short.
 */
const properties = ({ data, port }: ServerLocation): string => `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${port + 1}
listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${port + 1}
advertised.listeners=PLAINTEXT://127.0.0.1:${port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=${logsOf(data)}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=1000
broker.session.timeout.ms=3000
`;

/** 16 random bytes. Must not begin with "-", because Kafka's tool would read it as an option. */
const clusterId = (): string => randomBytes(16).toString('base64url').replace(/^-/, 'A');
