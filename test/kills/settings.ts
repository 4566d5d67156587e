import { expressionAgent } from '../support/stack.ts';
import { QUICK } from './load.ts';

export const SLOW = 'slow';
/** About a second and a half on the machines that the tests run on; long enough to be seen running, and killed. */
export const SLOW_ARGS = { n: 150_000 };
export const ENDLESS = 'endless';

const limits = { wallMs: 300_000, maxSteps: 1_000_000_000 };

export const KILL_AGENTS = [
  expressionAgent(QUICK, '{"n": n + 1}'),
  expressionAgent(SLOW, '($count := function($left) { $left = 0 ? 0 : $count($left - 1) }; {"left": $count(n)})', {
    limits,
  }),
  expressionAgent(ENDLESS, '($forever := function($turn) { $forever($turn + 1) }; $forever(n))', { limits }),
];

/** Longer than the stand-in for mongod is busy when several replicas start on it. */
export const PATIENT = { MONGODB_TIMEOUT_MS: '30000', KAFKA_TIMEOUT_MS: '30000', REDIS_TIMEOUT_MS: '30000' };

/** Short leases, so that what a dead process held is soon free; no job runs by itself, the tests run them. */
export const KILL_SETTINGS = {
  RUNNERS: '3',
  LEASE_MS: '1000',
  RUN_LEASE_MS: '1500',
  RESERVATION_TTL_MS: '4000',
  REAPER_INTERVAL_MS: '3600000',
  SWEEP_INTERVAL_MS: '3600000',
};
