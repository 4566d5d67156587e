import { choice, integer, type ConfigOf } from 'platform/core/config.ts';
import { redisConfig } from 'platform/service/redis-config.ts';

export const config = {
  ...redisConfig,
  RETENTION_DAYS: integer({
    default: 30,
    min: 1,
    max: 3_650,
    description: 'Days that the id of a grant or reservation is remembered; older ids are rejected.',
  }),
  SWEEP_INTERVAL_MS: integer({
    default: 5_000,
    min: 50,
    max: 3_600_000,
    description: 'Pause between two rounds of the sweeper that expires reservations.',
  }),
  LEDGER_PAGE_SIZE: integer({
    default: 20,
    min: 1,
    max: 1_000,
    description: 'Rows on a page of the ledger when the request names no size.',
  }),
  REDIS_TIMEOUT_MS: integer({
    default: 5_000,
    min: 100,
    max: 60_000,
    description: 'How long a step on Redis is repeated; then 503, or 504 if its outcome is unknown.',
  }),
  REDIS_UNSAFE: choice({
    values: ['refuse', 'allow'],
    default: 'refuse',
    description:
      'What to do with a Redis that may forget what it acknowledged (no appendonly, or eviction): refuse to start, or allow it.',
  }),
};
export type Config = ConfigOf<typeof config>;
