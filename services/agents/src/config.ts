import { DAY_MS } from 'platform/core/clock.ts';
import { integer } from 'platform/core/config.ts';

export const config = {
  RUNNERS: integer({
    description: 'Child processes that evaluate agents; started when first needed.',
    default: 2,
    min: 1,
    max: 64,
  }),
  RUNNER_RECYCLE_AFTER: integer({
    description: 'Runs after which a runner process is replaced.',
    default: 500,
    min: 1,
    max: 1_000_000,
  }),
  RUN_QUEUE_LIMIT: integer({
    description: 'Runs that may wait for a runner; one more is refused with 503.',
    default: 256,
    min: 0,
    max: 100_000,
  }),
  RUNS_AT_ONCE: integer({
    description: 'Runs that one organization may have open at once; one more is refused with 429.',
    default: 20,
    min: 1,
    max: 100_000,
  }),
  RUN_LEASE_MS: integer({
    description: "How long a run is its process's own without a heartbeat; then the reaper ends it.",
    default: 15_000,
    min: 100,
    max: 600_000,
  }),
  RESERVATION_TTL_MS: integer({
    description: 'How long a reservation of credits lives without a heartbeat; longer than RUN_LEASE_MS.',
    default: 120_000,
    min: 1_000,
    max: 3_600_000,
  }),
  REAPER_INTERVAL_MS: integer({
    description: 'Pause between two rounds of the reaper.',
    default: 5_000,
    min: 50,
    max: 3_600_000,
  }),
  RETENTION_INTERVAL_MS: integer({
    description: 'Pause between two rounds of the removal of what is past its retention.',
    default: 600_000,
    min: 50,
    max: DAY_MS,
  }),
  IDEMPOTENCY_KEY_TTL_MS: integer({
    description: 'How long the idempotency key of a run is kept.',
    default: DAY_MS,
    min: 600_000,
    max: 7 * DAY_MS,
  }),
  PAYLOAD_RETENTION_DAYS: integer({
    description: 'Days that args, output and messages of an execution are kept.',
    default: 30,
    min: 8,
    max: 3_650,
  }),
  EXECUTION_RETENTION_DAYS: integer({
    description: 'Days that an execution is kept.',
    default: 90,
    min: 8,
    max: 3_650,
  }),
};
