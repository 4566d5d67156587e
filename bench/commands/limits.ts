import { systemClock } from '../../platform/src/core/clock.ts';
import { makeLog } from '../../platform/src/core/log.ts';
import { serverToken } from '../../platform/src/service/testing.ts';
import { rateHeaders } from '../../gateway/src/limits/headers.ts';
import { limitsOf } from '../../gateway/src/limits/principal-limits.ts';
import { makeRateCounters } from '../../gateway/src/limits/rate-counters.ts';
import { aloneStore } from '../../gateway/src/limits/rate-stores.ts';

const ROUNDS = 5;
const REQUESTS = 300_000;
const GOAL_US = 5;

/** Prints the CPU microseconds that rate limits take of a request, headers included. */
export async function measureLimits(): Promise<void> {
  const counters = makeRateCounters(aloneStore(systemClock), systemClock, makeLog('bench', 'silent'));
  const principals = Array.from({ length: 1_000 }, (_, i) => ({
    ...serverToken(`organization-${i % 100}`),
    subject: `token-${i}`,
  }));
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let i = 0; i < REQUESTS; i++) {
      const limits = limitsOf(principals[i % principals.length]!, 'requests', { requests: 1e9 });
      counters.admit(limits);
      rateHeaders(counters, [
        ['token', limits[0]],
        ['organization', limits[1]],
      ]);
    }
    const { user, system } = process.cpuUsage(before);
    rounds.push((user + system) / REQUESTS);
  }
  counters.close();
  const median = rounds.sort((a, b) => a - b)[ROUNDS >> 1]!;
  process.stdout.write(`rate limits: ${median.toFixed(1)} µs of CPU a request (goal ${GOAL_US})\n`);
}
