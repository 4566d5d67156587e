import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { serverToken } from 'platform/service/testing.ts';
import type { Deps } from '../src/deps.ts';
import { openReleases } from '../src/executions/releases.ts';
import { definitionOf, until } from './fixture.ts';
import { simulateProcesses, type Simulation } from './simulated-processes.ts';

type ProcessDeps = Omit<Deps, 'bus'>;

describe('the reservation of a run that did not start', () => {
  const TTL_MS = 120_000;
  const unreachable = async (): Promise<never> => {
    throw new ServiceError('UNAVAILABLE');
  };
  let simulation: Simulation;
  beforeEach(async () => {
    simulation = await simulateProcesses({ ttlMs: TTL_MS });
    await simulation.publish(definitionOf('fixed', '"done"', { pricing: { base: 3 } }));
  });
  afterEach(() => simulation.close());

  /** Counts the calls of `release`, and lets the first ones fail. */
  function failingReleases(deps: ProcessDeps, failures: number): ProcessDeps & { attempts: () => number } {
    let attempts = 0;
    return {
      ...deps,
      attempts: () => attempts,
      credits: {
        ...deps.credits,
        release: (...args) => (++attempts <= failures ? unreachable() : deps.credits.release(...args)),
      },
    };
  }

  it('is released long before it expires, also when it was made only after the first releases failed', async () => {
    const failing = failingReleases(simulation.healthy, 2);
    let late: (() => void) | undefined;
    const credits: Deps['credits'] = {
      ...failing.credits,
      async reserve(...args) {
        late = () => void simulation.healthy.credits.reserve(...args);
        throw new ServiceError('UNAVAILABLE');
      },
      async release(...args) {
        return failing.credits.release(...args).finally(() => {
          if (failing.attempts() === 2) late?.();
        });
      },
    };
    await expect(simulation.run({ ...failing, credits }, 'fixed', 'key')).rejects.toMatchObject({
      reason: 'UNAVAILABLE',
    });
    await until(() => failing.attempts() === 3 && simulation.account.open === 0);
    expect(simulation.account).toMatchObject({ reserved: 0, open: 0, spent: 0 });
    expect(await simulation.run(simulation.healthy, 'fixed', 'key')).toMatchObject({ success: true });
  });

  it('is released also when the record could not be withdrawn and the first release failed', async () => {
    const full = simulation.process((step, side) => {
      if (step === 'evaluate' && side === 'before') throw new ServiceError('QUEUE_FULL');
    });
    const deps = failingReleases({ ...full, executions: { ...full.executions, withdraw: unreachable } }, 1);
    await expect(simulation.run(deps, 'fixed', 'key')).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    await until(() => simulation.account.open === 0);
    expect(simulation.account).toMatchObject({ reserved: 0, open: 0, spent: 0 });
    expect(deps.attempts()).toBe(2);
  });
});

describe('a release that credits does not answer', () => {
  const log = makeLog('agents', 'silent');
  const call = { principal: serverToken(newId()), requestId: newId() };
  const requested: string[] = [];
  const failing = (reason: 'UNAVAILABLE' | 'NOT_FOUND'): Pick<Deps['credits'], 'release'> => ({
    async release({ id }) {
      requested.push(id);
      throw new ServiceError(reason);
    },
  });
  const attempts = (id: string): number => requested.filter((each) => each === id).length;

  it('is repeated until the reservation has expired', async () => {
    const releases = openReleases({ ttlMs: 400, log });
    await releases.start(failing('UNAVAILABLE'), 'expiring', call);
    expect(releases.outstanding).toBe(1);
    await until(() => releases.outstanding === 0);
    expect(attempts('expiring')).toBeGreaterThan(1);
    expect(attempts('expiring')).toBeLessThan(4);
  });

  it('is no longer repeated when the process stops', async () => {
    const releases = openReleases({ ttlMs: 120_000, log });
    await releases.start(failing('UNAVAILABLE'), 'stopped', call);
    releases.stop();
    await until(() => releases.outstanding === 0);
    await releases.start(failing('UNAVAILABLE'), 'after', call);
    expect([attempts('stopped'), attempts('after'), releases.outstanding]).toEqual([1, 1, 0]);
  });

  it('is not repeated when credits does not know the reservation', async () => {
    const releases = openReleases({ ttlMs: 120_000, log });
    await releases.start(failing('NOT_FOUND'), 'unknown', call);
    expect([attempts('unknown'), releases.outstanding]).toEqual([1, 0]);
  });

  it('is not repeated when too many others are', async () => {
    const releases = openReleases({ ttlMs: 120_000, log, maxOutstanding: 2 });
    for (const id of ['one', 'two', 'three']) await releases.start(failing('UNAVAILABLE'), id, call);
    expect([attempts('three'), releases.outstanding]).toEqual([1, 2]);
    releases.stop();
  });
});
