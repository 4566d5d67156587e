import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { serverToken } from 'platform/service/testing.ts';
import type { Deps } from '../src/deps.ts';
import { openReleases } from '../src/executions/release.ts';
import { definitionOf, until } from './agents-fixture.ts';
import { openWorld, type World } from './processes.ts';

type ProcessDeps = Omit<Deps, 'bus'>;

describe('what was set aside for a run that did not start', () => {
  const TTL_MS = 120_000;
  const away = async (): Promise<never> => {
    throw new ServiceError('UNAVAILABLE');
  };
  let world: World;
  beforeEach(async () => {
    world = await openWorld({ ttlMs: TTL_MS });
    await world.publish(definitionOf('fixed', '"done"', { pricing: { base: 3 } }));
  });
  afterEach(() => world.close());

  /** The first releases fail. */
  function deaf(deps: ProcessDeps, failures: number): ProcessDeps & { attempts: () => number } {
    let attempts = 0;
    return {
      ...deps,
      attempts: () => attempts,
      credits: {
        ...deps.credits,
        release: (...args) => (++attempts <= failures ? away() : deps.credits.release(...args)),
      },
    };
  }

  it('is given back though the first releases failed and the reservation was made only after them, long before it expires', async () => {
    const pause = deaf(world.healthy, 2);
    let late: (() => void) | undefined;
    const credits: Deps['credits'] = {
      ...pause.credits,
      async reserve(...args) {
        late = () => void world.healthy.credits.reserve(...args);
        throw new ServiceError('UNAVAILABLE');
      },
      async release(...args) {
        return pause.credits.release(...args).finally(() => {
          if (pause.attempts() === 2) late?.();
        });
      },
    };
    await expect(world.run({ ...pause, credits }, 'fixed', 'key')).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
    await until(() => pause.attempts() === 3 && world.account.open === 0);
    expect(world.account).toMatchObject({ reserved: 0, open: 0, spent: 0 });
    expect(await world.run(world.healthy, 'fixed', 'key')).toMatchObject({ success: true });
  });

  it('is given back though its record could not be taken back and the first release failed', async () => {
    const full = world.process((step, side) => {
      if (step === 'evaluate' && side === 'before') throw new ServiceError('QUEUE_FULL');
    });
    const deps = deaf({ ...full, executions: { ...full.executions, withdraw: away } }, 1);
    await expect(world.run(deps, 'fixed', 'key')).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    await until(() => world.account.open === 0);
    expect(world.account).toMatchObject({ reserved: 0, open: 0, spent: 0 });
    expect(deps.attempts()).toBe(2);
  });
});

describe('the releases that credits does not answer', () => {
  const log = makeLog('agents', 'silent');
  const call = { principal: serverToken(newId()), requestId: newId() };
  const asked: string[] = [];
  const failing = (reason: 'UNAVAILABLE' | 'NOT_FOUND'): Pick<Deps['credits'], 'release'> => ({
    async release({ id }) {
      asked.push(id);
      throw new ServiceError(reason);
    },
  });
  const attempts = (id: string): number => asked.filter((each) => each === id).length;

  it('end with the reservation', async () => {
    const releases = openReleases({ ttlMs: 400, log });
    await releases.begin(failing('UNAVAILABLE'), 'expires', call);
    expect(releases.outstanding).toBe(1);
    await until(() => releases.outstanding === 0);
    expect(attempts('expires')).toBeGreaterThan(1);
    expect(attempts('expires')).toBeLessThan(4);
  });

  it('end when the process stops, and none begins after that', async () => {
    const releases = openReleases({ ttlMs: 120_000, log });
    await releases.begin(failing('UNAVAILABLE'), 'stopped', call);
    releases.stop();
    await until(() => releases.outstanding === 0);
    await releases.begin(failing('UNAVAILABLE'), 'after', call);
    expect([attempts('stopped'), attempts('after'), releases.outstanding]).toEqual([1, 1, 0]);
  });

  it('are not repeated when credits will never take them', async () => {
    const releases = openReleases({ ttlMs: 120_000, log });
    await releases.begin(failing('NOT_FOUND'), 'unknown', call);
    expect([attempts('unknown'), releases.outstanding]).toEqual([1, 0]);
  });

  it('are so many at most', async () => {
    const releases = openReleases({ ttlMs: 120_000, log, most: 2 });
    for (const id of ['one', 'two', 'three']) await releases.begin(failing('UNAVAILABLE'), id, call);
    expect([attempts('three'), releases.outstanding]).toEqual([1, 2]);
    releases.stop();
  });
});
