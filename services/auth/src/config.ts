import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';
import { integer, text, type ConfigOf } from 'platform/core/config.ts';
import { masterKeyFile } from 'platform/core/master-key.ts';

export const config = {
  MASTER_KEY_FILE: masterKeyFile,
  JWT_ISSUER: text({
    default: 'http://127.0.0.1:8080',
    form: ['an http:// or https:// URL', /^https?:\/\/[^?#\s]+$/],
    description: 'Issuer and audience of JWTs (iss, aud): the URL by which clients reach the gateway.',
  }),
  JWT_KEY_DAYS: integer({
    default: 30,
    min: 1,
    max: 365,
    description: 'Days after which another key signs JWTs.',
  }),
  LAST_USED_FLUSH_MS: integer({
    default: 5_000,
    min: 100,
    max: 10_000,
    description: 'Longest time until the last use of a server token is written to the store.',
  }),
  AUDIT_RETENTION_DAYS: integer({
    default: 400,
    min: 1,
    max: 36_500,
    description: 'Days that an audit entry is kept.',
  }),
  AUDIT_RETENTION_INTERVAL_MS: integer({
    default: HOUR_MS,
    min: 1_000,
    max: DAY_MS,
    description: 'Pause between two rounds of the job that removes audit entries past their retention.',
  }),
  EVENT_RETENTION_INTERVAL_MS: integer({
    default: HOUR_MS,
    min: 1_000,
    max: DAY_MS,
    description: 'Pause between two rounds of the job that removes what is past its retention from the event file.',
  }),
};
export type Config = ConfigOf<typeof config>;
