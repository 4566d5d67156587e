import { readFileSync } from 'node:fs';
import type { KafkaConfig, SASLOptions } from 'kafkajs';
import { choice, path, text, type ConfigOf } from '../../core/config.ts';
import { StartError } from '../../core/start-error.ts';

/** TLS of the connections to Kafka, and the credentials of the service there. */
export const kafkaSecurityConfig = {
  KAFKA_TLS: choice({ default: 'off', values: ['off', 'on'], description: 'Whether connections to Kafka use TLS.' }),
  KAFKA_TLS_CA_FILE: path({
    default: '',
    description:
      "Certificate authorities (PEM) that the brokers' certificates must be signed by; empty: those that Node trusts.",
  }),
  KAFKA_SASL_MECHANISM: choice({
    default: 'none',
    values: ['none', 'plain', 'scram-sha-256', 'scram-sha-512'],
    description: 'How the service authenticates to Kafka.',
  }),
  KAFKA_USERNAME: text({ default: '', description: 'User name for KAFKA_SASL_MECHANISM.' }),
  KAFKA_PASSWORD: text({
    default: '',
    secret: true,
    description: 'Password of KAFKA_USERNAME; or KAFKA_PASSWORD_FILE.',
  }),
  KAFKA_PASSWORD_FILE: path({
    default: '',
    description: 'File that contains the password of KAFKA_USERNAME; a line break at its end is ignored.',
  }),
};
export type KafkaSecurity = Pick<KafkaConfig, 'ssl' | 'sasl'>;

/**
 * Options of the Kafka client from the settings.
 * @throws StartError when they contradict each other or a file cannot be read
 */
export function kafkaSecurity(settings: ConfigOf<typeof kafkaSecurityConfig>): KafkaSecurity {
  return { ssl: tlsOf(settings), sasl: credentialsOf(settings) };
}

function tlsOf({
  KAFKA_TLS: tls,
  KAFKA_TLS_CA_FILE: caFile,
}: ConfigOf<typeof kafkaSecurityConfig>): KafkaSecurity['ssl'] {
  if (tls === 'off' && caFile !== '') throw new StartError('KAFKA_TLS_CA_FILE needs KAFKA_TLS=on');
  if (caFile === '') return tls === 'on';
  const ca = contentOf('KAFKA_TLS_CA_FILE', caFile);
  if (!ca.includes('-----BEGIN CERTIFICATE-----')) throw new StartError('KAFKA_TLS_CA_FILE holds no certificate');
  return { ca };
}

function credentialsOf(settings: ConfigOf<typeof kafkaSecurityConfig>): SASLOptions | undefined {
  const {
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_USERNAME: username,
    KAFKA_PASSWORD: given,
    KAFKA_PASSWORD_FILE: file,
  } = settings;
  if (given !== '' && file !== '')
    throw new StartError('KAFKA_PASSWORD and KAFKA_PASSWORD_FILE are both set: one of them is enough');
  const password = file === '' ? given : contentOf('KAFKA_PASSWORD_FILE', file).replace(/\r?\n$/, '');
  if (mechanism === 'none') {
    if (username === '' && password === '') return undefined;
    throw new StartError('KAFKA_USERNAME and its password need KAFKA_SASL_MECHANISM');
  }
  if (username === '' || password === '')
    throw new StartError(
      `KAFKA_SASL_MECHANISM=${mechanism} needs KAFKA_USERNAME and its password (KAFKA_PASSWORD_FILE or KAFKA_PASSWORD)`,
    );
  return { mechanism, username, password };
}

function contentOf(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError(`${setting} cannot be read: ${(error as Error).message}`);
  }
}
