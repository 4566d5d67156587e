import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describeConfig, readConfig } from 'platform/core/config.ts';
import { engineConfig, openBusEngine } from 'platform/service/backends.ts';
import pino from 'pino';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freePort } from '../../../dev-servers/src/ports.ts';
import { kafkaFolder } from '../../../dev-servers/src/kafka.ts';
import { startKafka, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { ENGINES_FOLDER } from '../../../dev-servers/src/server-spec.ts';
import { eventOf } from './event-of.ts';
import { newPrefix, publishWithRetries } from './kafka-fixture.ts';

const PASSWORD = 'secret-password';
/** Enough to start Java four times. */
const START_MS = 300_000;
const run = promisify(execFile);
const folder = temporaryFolder();
const file = (name: string): string => join(folder.path, name);

describe('Kafka that asks for TLS and credentials', () => {
  let server: PrivateServer;
  let [plainText, tls]: [string, string] = ['', ''];

  beforeAll(async () => {
    // openssl comes with Debian's Java.
    await run('openssl', [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=broker',
      '-addext',
      'subjectAltName=IP:127.0.0.1',
      '-keyout',
      file('key.pem'),
      '-out',
      file('ca.pem'),
    ]);
    writeFileSync(file('broker.pem'), readFileSync(file('key.pem'), 'utf8') + readFileSync(file('ca.pem'), 'utf8'));
    writeFileSync(file('password'), `${PASSWORD}\n`);

    server = await startKafka();
    await run('java', [
      '-cp',
      join(kafkaFolder(ENGINES_FOLDER), '*'),
      'kafka.admin.ConfigCommand',
      '--bootstrap-server',
      server.url,
      '--alter',
      '--add-config',
      `SCRAM-SHA-256=[password=${PASSWORD}]`,
      '--entity-type',
      'users',
      '--entity-name',
      'app',
    ]);
    [plainText, tls] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    const advertised = `PLAINTEXT://${server.url},SASL_PLAINTEXT://${plainText},SASL_SSL://${tls}`;
    const logins = ['SASL_PLAINTEXT', 'SASL_SSL'].flatMap((listener) => {
      const of = (mechanism: string) =>
        `listener.name.${listener.toLowerCase()}.${mechanism}.sasl.jaas.config=org.apache.kafka.common.security`;
      return [
        `${of('plain')}.plain.PlainLoginModule required user_app="${PASSWORD}";`,
        `${of('scram-sha-256')}.scram.ScramLoginModule required;`,
      ];
    });
    await server.restart({
      args: [
        'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL',
        `listeners=${advertised},CONTROLLER://127.0.0.1:${server.port + 1}`,
        `advertised.listeners=${advertised}`,
        'sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256',
        'listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN',
        ...logins,
        `ssl.keystore.location=${file('broker.pem')}`,
        'ssl.keystore.type=PEM',
      ],
    });
  }, START_MS);
  afterAll(async () => {
    await server.stop();
    folder.remove();
  });

  const logged: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) });
  const open = (env: Record<string, string>) =>
    openBusEngine(
      {
        settings: { ...readConfig(engineConfig, { KAFKA_PARTITIONS: '1', ...env }), LEASE_MS: 5_000 },
        service: 'test',
        log,
      },
      '',
      ['audit.v1'],
    );
  const app = { KAFKA_SASL_MECHANISM: 'plain', KAFKA_USERNAME: 'app', KAFKA_PASSWORD: PASSWORD };
  const overTls = () => ({ KAFKA_BROKERS: tls, KAFKA_TLS: 'on', KAFKA_TLS_CA_FILE: file('ca.pem') });
  afterEach(() => {
    expect(logged.join('\n')).not.toContain(PASSWORD);
  });

  it.each([
    ['PLAIN', () => ({ KAFKA_BROKERS: plainText, ...app })],
    [
      'PLAIN over TLS, its password in a file',
      () => ({ ...overTls(), ...app, KAFKA_PASSWORD: '', KAFKA_PASSWORD_FILE: file('password') }),
    ],
    ['SCRAM-SHA-256 over TLS', () => ({ ...overTls(), ...app, KAFKA_SASL_MECHANISM: 'scram-sha-256' })],
  ])('carries events by %s', async (_, settings) => {
    const bus = await open({ KAFKA_TOPIC_PREFIX: newPrefix(), ...settings() });
    const [event, received] = [eventOf('o', 1), Promise.withResolvers<unknown>()];
    await bus.subscribe('audit.v1', 'g', async (one) => received.resolve(one), { maxAttempts: 1, retryDelayMs: 1 });
    await publishWithRetries(bus, 'audit.v1', [event]);
    expect(await received.promise).toEqual(event);
    await bus.close();
  });

  it.each<[string, () => Record<string, string>, RegExp]>([
    [
      'the password is wrong',
      () => ({ KAFKA_BROKERS: plainText, ...app, KAFKA_PASSWORD: `${PASSWORD}-x` }),
      /^Kafka at 127\.0\.0\.1:\d+ cannot be used: it rejects the user name or password \(KAFKA_USERNAME\)$/,
    ],
    [
      'the password is wrong by SCRAM',
      () => ({ ...overTls(), ...app, KAFKA_SASL_MECHANISM: 'scram-sha-256', KAFKA_PASSWORD: `${PASSWORD}-x` }),
      /: it rejects the user name or password \(KAFKA_USERNAME\)$/,
    ],
    [
      'the user is unknown',
      () => ({ KAFKA_BROKERS: plainText, ...app, KAFKA_USERNAME: 'eve' }),
      /: it rejects the user name or password \(KAFKA_USERNAME\)$/,
    ],
    [
      'the broker does not support the mechanism',
      () => ({ KAFKA_BROKERS: plainText, ...app, KAFKA_SASL_MECHANISM: 'scram-sha-256' }),
      /: it does not support the mechanism that KAFKA_SASL_MECHANISM names$/,
    ],
    [
      'the broker expects credentials and there are none',
      () => ({ KAFKA_BROKERS: plainText }),
      /: it closes the connection, as a broker does that expects another KAFKA_TLS or KAFKA_SASL_MECHANISM$/,
    ],
    [
      'the broker expects TLS and the service does not use it',
      () => ({ KAFKA_BROKERS: tls, ...app }),
      /: it (closes the connection, as a broker does that expects another KAFKA_TLS or KAFKA_SASL_MECHANISM|does not answer)$/,
    ],
    [
      'the service uses TLS and the broker does not',
      () => ({ ...overTls(), KAFKA_BROKERS: plainText, ...app }),
      /: it closes the connection, as a broker does that expects another KAFKA_TLS or KAFKA_SASL_MECHANISM$/,
    ],
    [
      'the certificate of the broker is from an unknown authority',
      () => ({ ...overTls(), ...app, KAFKA_TLS_CA_FILE: '' }),
      /: its certificate is not trusted \(self-signed certificate\); set KAFKA_TLS_CA_FILE to the certificate of its authority$/,
    ],
    [
      'the file of authorities cannot be read',
      () => ({ ...overTls(), ...app, KAFKA_TLS_CA_FILE: '/nowhere/ca.pem' }),
      /^KAFKA_TLS_CA_FILE cannot be read: ENOENT.*'\/nowhere\/ca\.pem'$/,
    ],
    [
      'the file of authorities has no certificate',
      () => ({ ...overTls(), ...app, KAFKA_TLS_CA_FILE: file('password') }),
      /^KAFKA_TLS_CA_FILE holds no certificate$/,
    ],
    [
      'the password cannot be read',
      () => ({ KAFKA_BROKERS: plainText, ...app, KAFKA_PASSWORD: '', KAFKA_PASSWORD_FILE: '/nowhere/password' }),
      /^KAFKA_PASSWORD_FILE cannot be read: ENOENT/,
    ],
    [
      'there are two passwords',
      () => ({ KAFKA_BROKERS: plainText, ...app, KAFKA_PASSWORD_FILE: file('password') }),
      /^KAFKA_PASSWORD and KAFKA_PASSWORD_FILE are both set: one of them is enough$/,
    ],
    [
      'the password is missing',
      () => ({ KAFKA_BROKERS: plainText, ...app, KAFKA_PASSWORD: '' }),
      /^KAFKA_SASL_MECHANISM=plain needs KAFKA_USERNAME and its password/,
    ],
    [
      'the mechanism is missing',
      () => ({ KAFKA_BROKERS: plainText, ...app, KAFKA_SASL_MECHANISM: 'none' }),
      /^KAFKA_USERNAME and its password need KAFKA_SASL_MECHANISM$/,
    ],
    [
      'there are authorities without TLS',
      () => ({ ...overTls(), KAFKA_TLS: 'off' }),
      /^KAFKA_TLS_CA_FILE needs KAFKA_TLS=on$/,
    ],
  ])('makes the start fail with one sentence, without the password, when %s', async (_, settings, sentence) => {
    const error = await open({ KAFKA_TOPIC_PREFIX: newPrefix(), ...settings() }).then(
      () => new Error('it opened'),
      (reason: Error) => reason,
    );
    expect(error.message).toMatch(sentence);
    expect(error.message).not.toMatch(/\n|secret-password/);
    expect(error.name).toBe('StartError');
  });

  it('does not show the password in --help', () => {
    expect(describeConfig({ KAFKA_PASSWORD: { ...engineConfig.KAFKA_PASSWORD, default: PASSWORD } })).not.toContain(
      PASSWORD,
    );
  });
});
