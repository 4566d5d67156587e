import { address, addresses, integer, path, text } from 'platform/core/config.ts';
import { restMethods } from './contract/rest-methods.ts';
import { commonConfig } from 'platform/service/process.ts';
import { tracesConfig } from 'platform/telemetry/traces-config.ts';
import { redisConfig } from 'platform/service/redis-config.ts';
import { metricsConfig } from 'platform/telemetry/metrics.ts';
import { PROCESSES, settingOf, type ProcessName } from 'platform/core/processes.ts';

/** Services that the gateway calls: auth, and every service that has a route. */
export const audiences = (): ProcessName[] =>
  [...new Set(['auth', ...restMethods().map(({ audience }) => audience)])].sort() as ProcessName[];

export const LISTEN = settingOf('gateway', 'LISTEN');
export const METRICS_LISTEN = settingOf('gateway', 'METRICS_LISTEN');

const own = {
  PUBLIC_URL: text({
    default: '',
    form: ['http:// or https:// and a host, such as https://api.example.com', /^https?:\/\/[^/?#\s]+$/],
    description: 'Scheme and host for the URLs in Location and Link; empty: those of the request.',
  }),
  TRUSTED_PROXIES: integer({
    default: 0,
    min: 0,
    max: 10,
    description: 'Number of proxies in front of the gateway; only what they add to Forwarded or X-Forwarded-* is used.',
  }),
  GATEWAY_TLS_CERT_FILE: path({
    default: '',
    description:
      'Certificate that clients see (PEM, followed by those of its authorities); read again when it changes. ' +
      'Empty: HTTP without TLS.',
  }),
  GATEWAY_TLS_KEY_FILE: path({ default: '', description: 'The private key of GATEWAY_TLS_CERT_FILE (PEM).' }),
  LISTEN_WHILE_UNREADY_MS: integer({
    default: 0,
    min: 0,
    max: 600_000,
    description:
      'How long a gateway that stops still takes connections while /readyz answers 503, so that balancers notice; part ' +
      'of DRAIN_MS.',
  }),
  KEEP_IDLE_MS: integer({
    default: 0,
    min: 0,
    max: 600_000,
    description:
      'How long a gateway that stops leaves idle connections open, which end with their next reply: a request that is on ' +
      'its way to one that is closed fails. After 65 s, clients that heed Keep-Alive have left; part of DRAIN_MS.',
  }),
  CORS_ORIGINS: text({
    default: '',
    form: [
      'origins such as https://app.example.com, with commas and no spaces between them',
      /^https?:\/\/[^\s,/]+(,https?:\/\/[^\s,/]+)*$/,
    ],
    description: 'Origins whose scripts may read the replies (CORS), comma-separated; empty: none.',
  }),
  MAX_BODY_BYTES: integer({
    default: 1_048_576,
    min: 1_024,
    max: 3_145_728,
    description: 'Largest request body, in bytes.',
  }),
  BODY_TIMEOUT_MS: integer({
    default: 30_000,
    min: 100,
    max: 600_000,
    description: 'Time limit for the headers of a request to arrive, and then for its body.',
  }),
  FIRST_BYTE_TIMEOUT_MS: integer({
    default: 5_000,
    min: 100,
    max: 600_000,
    description: 'A new connection on which nothing arrives for this time is closed.',
  }),
  READ_TIMEOUT_MS: integer({
    default: 30_000,
    min: 100,
    max: 600_000,
    description: 'A client that takes nothing of its reply for this time is disconnected.',
  }),
  BYTES_IN_FLIGHT: integer({
    default: 268_435_456,
    min: 1_048_576,
    max: 17_179_869_184,
    description:
      'Bytes of request bodies and of replies in memory at once; one organization gets at most half, ' +
      'so twice the largest page must fit.',
  }),
  BYTES_IN_FLIGHT_PER_TOKEN: integer({
    default: 67_108_864,
    min: 524_288,
    max: 17_179_869_184,
    description: 'The same for the requests of one token; the largest page must fit.',
  }),
  REQUESTS_PER_MINUTE: integer({
    default: 600,
    min: 1,
    max: 100_000_000,
    description:
      'Requests of one token in a minute, runs apart; an organization may make five times as many. The licence tier ' +
      'multiplies both (enterprise: by 10).',
  }),
  RUNS_PER_MINUTE: integer({
    default: 120,
    min: 1,
    max: 100_000_000,
    description: 'The same for runs of agents.',
  }),
  STRANGER_REQUESTS_PER_MINUTE: integer({
    default: 60,
    min: 1,
    max: 100_000_000,
    description:
      'Requests without a valid token from one address in a minute (IPv6: one /64 network, twice as many from a /56 ' +
      'and four times as many from a /48).',
  }),
  REQUESTS_AT_ONCE: integer({
    default: 128,
    min: 1,
    max: 1_000_000,
    description: 'Requests of one token that this gateway works on at once; twice as many of one organization.',
  }),
  TRACES_ASKED_PER_MINUTE: integer({
    default: 60,
    min: 0,
    max: 1_000_000,
    description:
      'Requests in a minute that are traced because their clients ask for it (traceparent), those of all clients ' +
      'together; beyond that they are traced as often as others.',
  }),
  MAX_CONNECTIONS: integer({
    default: 4_096,
    min: 1,
    max: 1_000_000,
    description:
      'Open connections of clients at once. A further client gets the place of an idle connection, ' +
      'from the address that has the most.',
  }),
  CONNECTIONS_PER_ADDRESS: integer({
    default: 512,
    min: 1,
    max: 1_000_000,
    description:
      'Open connections from one address (IPv6: one /64 network, twice as many from a /56 and four times as many ' +
      'from a /48); no limit if TRUSTED_PROXIES is more than 0.',
  }),
};

const addressOf = (name: ProcessName) =>
  [
    settingOf(name, 'ADDRESS'),
    addresses({
      default: PROCESSES[name],
      description: `host:port of the ${name} service; several replicas comma-separated.`,
    }),
  ] as const;

export const config = {
  ...commonConfig('gateway'),
  ...tracesConfig,
  [LISTEN]: address({ default: PROCESSES.gateway, description: 'host:port that the gateway listens on.' }),
  ...metricsConfig('gateway'),
  ...Object.fromEntries(audiences().map(addressOf)),
  ...own,
  ...redisConfig,
};
