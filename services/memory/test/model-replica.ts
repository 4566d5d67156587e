import { setImmediate as nextTurn } from 'node:timers/promises';
import { ServiceError } from 'platform/core/errors.ts';
import type { OpenStore, Store } from 'platform/store/store.ts';
import type { Deps } from '../src/deps.ts';
import { openTestDeps } from './test-deps.ts';

/** Of what a batch may come to, and with it its process. */
const UNAVAILABLE = 0.03;
const ANSWER_LOST = 0.05;
const DIES_BEFORE = 0.065;
const DIES_AFTER = 0.08;

/** How many calls of the store are late, and by how many turns of the event loop at most: others overtake them. */
const LATE = 0.1;
const MAX_TURNS = 200;

/** One replica, which may die. */
export interface Replica {
  deps: Deps;
  isDead(): boolean;
  /** The work; rejects when the replica dies during it, as a client sees it. */
  unlessItDies<T>(work: Promise<T>): Promise<T>;
  /** Resolves when nothing that it has sent to the store is under way. */
  settled(): Promise<void>;
}

/**
 * Starts a replica as a new process has it: with locks, caches and a name of its own. Its batches sometimes fail,
 * sometimes are applied although their answer is lost, and sometimes the process dies before or after one: from then on
 * its store answers nothing.
 * @param chance draws the faults: from 0 to 1
 */
export async function startReplica(
  opened: OpenStore,
  chance: () => number,
  settings: Partial<Deps['config']>,
): Promise<Replica> {
  const death = Promise.withResolvers<never>();
  death.promise.catch(() => undefined);
  const never = new Promise<never>(() => undefined);
  const sent = new Set<Promise<unknown>>();
  let isDead = false;
  const die = (): void => {
    isDead = true;
    death.reject(new ServiceError('OUTCOME_UNKNOWN'));
  };
  /** What has been sent to the store takes place; a dead process does not learn of it, and sends nothing more. */
  async function answered<T>(send: () => Promise<T>): Promise<T> {
    if (chance() < LATE) for (let turns = MAX_TURNS * chance(); turns > 0; turns--) await nextTurn();
    if (isDead) return never;
    const sending = send();
    sent.add(sending);
    const [outcome] = await Promise.allSettled([sending]);
    sent.delete(sending);
    return isDead ? never : outcome.status === 'fulfilled' ? outcome.value : Promise.reject(outcome.reason as Error);
  }
  const { findOne, find, count, sum, apply } = opened.store;
  const store: Store = {
    findOne: (...args: Parameters<typeof findOne>) => answered(() => findOne(...args)),
    find: (...args: Parameters<typeof find>) => answered(() => find(...args)),
    count: (...args: Parameters<typeof count>) => answered(() => count(...args)),
    sum: (...args: Parameters<typeof sum>) => answered(() => sum(...args)),
    apply: (...args) =>
      answered(async () => {
        const drawn = chance();
        if (drawn < UNAVAILABLE) throw new ServiceError('UNAVAILABLE');
        if (drawn >= ANSWER_LOST && drawn < DIES_BEFORE) return die();
        await apply(...args);
        if (drawn < ANSWER_LOST) throw new ServiceError('OUTCOME_UNKNOWN');
        if (drawn < DIES_AFTER) die();
      }),
  } as Store;
  const { deps } = await openTestDeps('', 4, async () => ({ ...opened, store }));
  return {
    deps: { ...deps, config: { ...deps.config, ...settings } },
    isDead: () => isDead,
    unlessItDies: (work) => Promise.race([work, death.promise]),
    async settled() {
      while (sent.size > 0) await Promise.allSettled(sent);
    },
  };
}
