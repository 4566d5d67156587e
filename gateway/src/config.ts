import { address, addresses, integer, text } from 'platform/core/config.ts';
import { restMethods } from './contract/rest-methods.ts';
import { commonConfig } from 'platform/service/process.ts';
import { PROCESSES, settingOf, type ProcessName } from 'platform/core/processes.ts';

/** Services that the gateway calls: auth, and every service that has a route. */
export const audiences = (): ProcessName[] =>
  [...new Set(['auth', ...restMethods().map(({ audience }) => audience)])].sort() as ProcessName[];

export const LISTEN = settingOf('gateway', 'LISTEN');

const own = {
  PUBLIC_URL: text({
    default: '',
    pattern: /^https?:\/\/[^/?#\s]+$/,
    description: 'Scheme and host for the URLs in Location and Link; empty: those of the request.',
  }),
  TRUSTED_PROXIES: integer({
    default: 0,
    min: 0,
    max: 10,
    description: 'Number of proxies in front of the gateway; only what they add to Forwarded or X-Forwarded-* is used.',
  }),
  CORS_ORIGINS: text({
    default: '',
    pattern: /^https?:\/\/[^\s,/]+(,https?:\/\/[^\s,/]+)*$/,
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
  [LISTEN]: address({ default: PROCESSES.gateway, description: 'host:port that the gateway listens on.' }),
  ...Object.fromEntries(audiences().map(addressOf)),
  ...own,
};
