import { choice, integer, text, type ConfigOf } from 'platform/core/config.ts';

export const config = {
  RETENTION_DAYS: integer({
    description: 'How long the id of a grant or reservation is remembered; ids that are older are refused.',
    default: 30,
    min: 1,
    max: 3_650,
  }),
  SWEEP_INTERVAL_MS: integer({
    description: 'Pause between two rounds of the sweeper that expires reservations.',
    default: 5_000,
    min: 50,
    max: 3_600_000,
  }),
  LEDGER_PAGE_SIZE: integer({
    description: 'Rows on a page of the ledger when the request names no size.',
    default: 20,
    min: 1,
    max: 1_000,
  }),
  REDIS_URL: text({
    description:
      'redis://[user:password@]host:port of the ledger; empty: the embedded ledger. Needs MONGODB_URL, where the rows go.',
    default: '',
    secret: true,
  }),
  REDIS_KEY_PREFIX: text({
    description: "Begins every key of the ledger's in Redis.",
    default: 'credits',
    pattern: /^[\w.-]{1,64}$/,
  }),
  REDIS_TIMEOUT_MS: integer({
    description: 'How long a step on Redis is tried before 503, or 504 where its outcome is unknown.',
    default: 5_000,
    min: 100,
    max: 60_000,
  }),
  REDIS_UNSAFE: choice({
    description:
      'A Redis without appendonly yes or with eviction may forget what it acknowledged: refuse it, or allow it.',
    values: ['refuse', 'allow'],
    default: 'refuse',
  }),
};
export type Config = ConfigOf<typeof config>;
