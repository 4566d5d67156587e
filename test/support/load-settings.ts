import { expressionAgent } from './tenant.ts';

// Agents and settings for tests that put a stack under load and then make something fail.

export const QUICK = 'quick';

export const SLOW = 'slow';
/** Arguments with which SLOW runs for about 1.5 s: long enough for a test to see it running and to kill it. */
export const SLOW_ARGS = { n: 150_000 };
export const ENDLESS = 'endless';

const limits = { wallMs: 300_000, maxSteps: 1_000_000_000 };

export const LOAD_AGENTS = [
  expressionAgent(QUICK, '{"n": n + 1}'),
  expressionAgent(SLOW, '($count := function($left) { $left = 0 ? 0 : $count($left - 1) }; {"left": $count(n)})', {
    limits,
  }),
  expressionAgent(ENDLESS, '($forever := function($turn) { $forever($turn + 1) }; $forever(n))', { limits }),
];

/** Longer than the stand-in for mongod is busy when several replicas start on it at once. */
export const LONG_ENGINE_TIMEOUTS = {
  MONGODB_TIMEOUT_MS: '30000',
  KAFKA_TIMEOUT_MS: '30000',
  REDIS_TIMEOUT_MS: '30000',
};

/**
 * Short leases, so that what a dead process held is soon free. Not shorter: each is renewed three times in its time,
 * and with 1 s half of what the stand-in for mongod did was for leases. Reaper and sweeper run only when a test runs
 * them.
 */
export const SHORT_LEASES = {
  RUNNERS: '3',
  LEASE_MS: '3000',
  RUN_LEASE_MS: '3000',
  RESERVATION_TTL_MS: '8000',
  REAPER_INTERVAL_MS: '3600000',
  SWEEP_INTERVAL_MS: '3600000',
};
