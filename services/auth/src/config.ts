import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';
import { integer, type ConfigOf } from 'platform/core/config.ts';

export const config = {
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
