import { systemClock } from 'platform/core/clock.ts';
import { fairScheduler, type FairScheduler } from 'platform/core/fair-scheduler.ts';
import type { HttpNeeds } from '../../src/runtimes/http/runtime.ts';
import { makeLookupTurns } from '../../src/runtimes/network/lookup-in-turn.ts';
import { makePoster } from '../../src/runtimes/network/post.ts';
import type { RunnerPool } from '../../src/runtimes/runners/runner-pool.ts';
import { runtimesOf, type Runtimes } from '../../src/runtimes/runtimes.ts';
import { makeTurns } from '../../src/runtimes/network/turns.ts';

/** The signing secret of http agents in tests. */
export const SECRET = `whsec_${Buffer.alloc(32, 'k').toString('base64')}`;

/** What a test that has no endpoint needs of runners that evaluate nothing. */
export const NO_RUNNERS: RunnerPool = {
  queued: 0,
  state: { busy: 0, idle: 0, started: 0, replaced: 0 },
  evaluate: () => Promise.reject(new Error('this test has no runners')),
  stop: () => Promise.resolve(),
};

/** All runtimes. Endpoints of agents may be on this machine; the organization has no secrets unless given. */
export function testRuntimes(
  runners: RunnerPool,
  { schedule = fairScheduler(), ...given }: Partial<HttpNeeds> & { schedule?: FairScheduler } = {},
): Runtimes {
  const networks = given.networks ?? ['127.0.0.1/32'];
  const onNetwork = () => ({
    poster: makePoster(networks, makeLookupTurns()),
    turns: makeTurns({ size: 4, limit: 100 }),
    secretValues: () => Promise.resolve([]),
    schedule,
    clock: systemClock,
    networks,
    ...given,
  });
  return runtimesOf({ runners, schedule, http: onNetwork(), llm: onNetwork() });
}
