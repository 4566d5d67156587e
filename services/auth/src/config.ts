import { integer, type ConfigOf } from 'platform/core/config.ts';

export const config = {
  LAST_USED_FLUSH_MS: integer({
    default: 5_000,
    min: 100,
    max: 10_000,
    description: 'Longest time that the last use of a server token waits in memory.',
  }),
  AUDIT_RETENTION_DAYS: integer({
    default: 400,
    min: 1,
    max: 36_500,
    description: 'Age at which an audit entry is removed.',
  }),
  AUDIT_RETENTION_INTERVAL_MS: integer({
    default: 3_600_000,
    min: 1_000,
    max: 86_400_000,
    description: 'Time between two looks for audit entries past their retention.',
  }),
};
export type Config = ConfigOf<typeof config>;
