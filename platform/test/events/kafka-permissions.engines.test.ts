import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes, type Admin } from 'kafkajs';
import { openKafkaBus } from 'platform/events/kafka/bus.ts';
import { StartError } from 'platform/core/start-error.ts';
import { freePort } from '../../../dev-servers/src/ports.ts';
import { startKafka, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { eventOf } from './event-of.ts';
import { newPrefix, optionsFor, publishWithRetries, withAdmin } from './kafka-fixture.ts';

const { DESCRIBE, DESCRIBE_CONFIGS, CREATE, READ, WRITE } = AclOperationTypes;
const { TOPIC, GROUP } = AclResourceTypes;

interface Permission {
  type: AclResourceTypes;
  /** Without the prefix. */
  name: string;
  pattern: ResourcePatternTypes;
  operation: AclOperationTypes;
}

const of = (
  type: AclResourceTypes,
  name: string,
  operation: AclOperationTypes,
  pattern = ResourcePatternTypes.LITERAL,
): Permission => ({ type, name, pattern, operation });
const onAll = (operation: AclOperationTypes): Permission => of(TOPIC, '', operation, ResourcePatternTypes.PREFIXED);

/**
 * The permissions that deploy/privileges.md lists for a service that publishes on one topic and consumes another,
 * each with the error of a start without it.
 */
const NEEDED: [string, Permission, RegExp][] = [
  [
    'CREATE of topics',
    onAll(CREATE),
    /^Kafka does not let this service CREATE its topics \((\S+, ){7}\S+memory\.change\.v1\.dlq\)$/,
  ],
  [
    'DESCRIBE of topics',
    onAll(DESCRIBE),
    /^Kafka does not let this service DESCRIBE its topics \(\S+agent\.execution\.v1, .*\)$/,
  ],
  [
    'DESCRIBE_CONFIGS of topics',
    onAll(DESCRIBE_CONFIGS),
    /^Kafka does not let this service DESCRIBE_CONFIGS of its topics \(\S+agent\.execution\.v1, .*\)$/,
  ],
  [
    'WRITE to what it publishes on',
    of(TOPIC, 'memory.change.v1', WRITE),
    /^Kafka does not let this service WRITE to the topic \S+memory\.change\.v1$/,
  ],
  [
    'READ of what it consumes',
    of(TOPIC, 'audit.v1', READ),
    /^Kafka does not let this service READ the topic \S+audit\.v1$/,
  ],
  [
    'READ as its group',
    of(GROUP, 'g.audit.v1', READ),
    /^Kafka does not let this service READ as the consumer group \S+g\.audit\.v1$/,
  ],
  [
    'WRITE to the dead letters',
    of(TOPIC, 'audit.v1.dlq', WRITE),
    /^Kafka does not let this service WRITE to the topic \S+audit\.v1\.dlq$/,
  ],
  [
    'READ of the dead letters',
    of(TOPIC, 'audit.v1.dlq', READ),
    /^Kafka does not let this service READ the topic \S+audit\.v1\.dlq$/,
  ],
  [
    'READ as the group that replays them',
    of(GROUP, 'g.audit.v1.dlq', READ),
    /^Kafka does not let this service READ as the consumer group \S+g\.audit\.v1\.dlq$/,
  ],
];

describe('on a Kafka that permits only what is granted', () => {
  let server: PrivateServer;
  let address: string;
  beforeAll(async () => {
    server = await startKafka();
    address = `127.0.0.1:${await freePort()}`;
    const advertised = `PLAINTEXT://${server.url},SASL_PLAINTEXT://${address}`;
    await server.restart({
      args: [
        'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT',
        `listeners=${advertised},CONTROLLER://127.0.0.1:${server.port + 1}`,
        `advertised.listeners=${advertised}`,
        'sasl.enabled.mechanisms=PLAIN',
        'listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_app="secret";',
        'authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'super.users=User:ANONYMOUS',
      ],
    });
  });
  afterAll(() => server.stop());

  const open = (prefix: string) =>
    openKafkaBus({
      ...optionsFor([address], prefix),
      publishes: ['memory.change.v1'],
      security: { sasl: { mechanism: 'plain', username: 'app', password: 'secret' } },
    });
  const grant = (prefix: string, permissions: readonly Permission[]) =>
    withAdmin([server.url], async (admin) => {
      await admin.createAcls({
        acl: permissions.map(({ type, name, pattern, operation }) => ({
          resourceType: type,
          resourceName: `${prefix}${name}`,
          resourcePatternType: pattern,
          principal: 'User:app',
          host: '*',
          operation,
          permissionType: AclPermissionTypes.ALLOW,
        })),
      });
      // The controller has the ACLs; wait until the broker has them as well.
      while ((await aclCount(admin, prefix)) < permissions.length);
    });
  const aclCount = async (admin: Admin, prefix: string): Promise<number> => {
    const { resources } = await admin.describeAcls({
      resourceType: AclResourceTypes.ANY,
      resourcePatternType: ResourcePatternTypes.ANY,
      operation: AclOperationTypes.ANY,
      permissionType: AclPermissionTypes.ANY,
    });
    return resources
      .filter(({ resourceName }) => resourceName.startsWith(prefix))
      .reduce((sum, { acls }) => sum + acls.length, 0);
  };
  const oneAttempt = { maxAttempts: 1, retryDelayMs: 1 };

  it('these permissions are enough to make the topics, to publish, to consume, and to write and replay dead letters', async () => {
    const prefix = newPrefix();
    await grant(prefix, [...NEEDED.map(([, permission]) => permission), of(TOPIC, 'audit.v1', WRITE)]);
    const bus = await open(prefix);
    await publishWithRetries(bus, 'memory.change.v1', [eventOf('o', 1)]);
    const auditing = await openKafkaBus({ ...optionsFor([server.url], prefix), publishes: ['audit.v1'] });
    const [event, failed] = [eventOf('o', 2), Promise.withResolvers<void>()];
    await publishWithRetries(auditing, 'audit.v1', [event]);
    await bus.subscribe(
      'audit.v1',
      'g',
      async () => {
        failed.resolve();
        throw new Error('never');
      },
      oneAttempt,
    );
    await failed.promise;
    const replayed: unknown[] = [];
    while ((await bus.replay('audit.v1', 'g', async (one) => void replayed.push(one))) === 0);
    expect(replayed).toEqual([event]);
    await Promise.all([bus.close(), auditing.close()]);
  });

  it.each(NEEDED)('a start without %s fails with one sentence that says so', async (_, missing, sentence) => {
    const prefix = newPrefix();
    await grant(
      prefix,
      NEEDED.map(([, permission]) => permission).filter((permission) => permission !== missing),
    );
    const error: unknown = await open(prefix)
      .then((bus) => bus.subscribe('audit.v1', 'g', async () => undefined, oneAttempt).finally(() => bus.close()))
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StartError);
    expect((error as StartError).message).toMatch(sentence);
  });
});
