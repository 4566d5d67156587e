import type { Log } from '../core/log.ts';
import { requireWaitingCaller } from '../store/retry-on-conflict.ts';
import type { OpenStore } from '../store/store.ts';
import { acquireLease, keepLease, releaseLease, type Lease } from './lease.ts';

/**
 * A counter that many requests change at once is kept as several documents, its shards, and its value is their sum.
 * This file decides which shard a batch writes. The choice never affects a value, only speed: on MongoDB two
 * concurrent transactions that write one document abort each other. So no two batches should write the same shard:
 * - between processes: the shards are divided into slots of 8, and each process leases a slot for itself;
 * - within a process: `withShard` gives a shard of the slot to one batch of an organization at a time.
 * With more processes than slots, some of them share a slot, and their batches may abort and be retried.
 */
export interface CounterShards {
  /** How many shards every counter has. */
  readonly count: number;
  /**
   * Runs `work` with the number of a shard (from 0) that this process uses for no other work of the organization
   * meanwhile; waits until one is free.
   * @throws ServiceError CLIENT_GONE when `signal` is aborted by then: many may wait while the engine hangs
   */
  withShard<T>(organizationId: string, signal: AbortSignal, work: (shard: number) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const SLOT_SIZE = 8;

/** For an engine whose batches wait for each other and never abort: one shard, no slots. */
const singleShard: CounterShards = {
  count: 1,
  withShard: (_organizationId, _signal, work) => work(0),
  close: async () => undefined,
};

/**
 * Leases a slot for this process. While none is free, the process uses one that another process has leased, and tries
 * again every `leaseMs`.
 * @param owner unique per process
 */
export async function openCounterShards(
  { counterShards: count, platformStore }: Pick<OpenStore, 'counterShards' | 'platformStore'>,
  { owner, leaseMs, log }: { owner: string; leaseMs: number; log: Log },
): Promise<CounterShards> {
  if (count === 1) return singleShard;
  const slots = Math.ceil(count / SLOT_SIZE);
  let pool = shardPool(shardsOf(Math.floor(Math.random() * slots), count));
  let keeper: ReturnType<typeof keepLease> | undefined;
  let closed = false;
  let retryTimer: NodeJS.Timeout | undefined;
  let attempt: Promise<void> | undefined;

  /** Whether a slot was free. */
  async function leaseSlot(): Promise<boolean> {
    for (let slot = 0; slot < slots; slot++) {
      const lease = await acquireLease(platformStore, leaseName(slot), owner, leaseMs);
      if (lease === undefined) continue;
      useSlot(slot, lease);
      return true;
    }
    return false;
  }

  function useSlot(slot: number, lease: Lease): void {
    pool = shardPool(shardsOf(slot, count));
    keeper = keepLease(platformStore, lease, leaseMs);
    keeper.signal.addEventListener('abort', () => {
      void keeper?.end();
      keeper = undefined;
      log.warn({ slot }, 'lost the lease of the slot of counter shards; the slot stays in use until another is leased');
      tryToLease();
    });
  }

  function tryToLease(): void {
    if (closed) return;
    attempt = leaseSlot()
      .catch((error: unknown) => log.debug({ error }, 'could not lease a slot of counter shards'))
      .then((leased) => {
        if (!leased) tryLater();
      });
  }

  function tryLater(): void {
    if (!closed) retryTimer = setTimeout(tryToLease, leaseMs).unref();
  }

  if (!(await leaseSlot())) {
    log.warn({ slots }, 'other processes lease every slot of counter shards; writes may be aborted and retried');
    tryLater();
  }
  return {
    count,
    withShard: (organizationId, signal, work) => pool(organizationId, signal, work),
    async close() {
      closed = true;
      clearTimeout(retryTimer);
      await attempt;
      const lease = await keeper?.end();
      if (lease) await releaseLease(platformStore, lease);
    },
  };
}

/** The stored name of the lease. It must not change: replicas of an older release lease the slots under this name. */
const leaseName = (slot: number): string => `hot-rows:${slot}`;

const shardsOf = (slot: number, count: number): number[] =>
  Array.from({ length: Math.min(SLOT_SIZE, count - slot * SLOT_SIZE) }, (_, i) => slot * SLOT_SIZE + i);

/** Gives each shard to one work of an organization at a time. Waiting works are served first come, first served. */
export function shardPool(shards: readonly number[]): CounterShards['withShard'] {
  const organizations = new Map<string, { free: number[]; waiting: ((shard: number) => void)[] }>();
  return async (organizationId, signal, work) => {
    let pool = organizations.get(organizationId);
    if (pool === undefined) organizations.set(organizationId, (pool = { free: [...shards], waiting: [] }));
    const { free, waiting } = pool;
    const shard = free.shift() ?? (await new Promise<number>((resolve) => waiting.push(resolve)));
    try {
      requireWaitingCaller(signal);
      return await work(shard);
    } finally {
      const next = waiting.shift();
      if (next) next(shard);
      else if (free.push(shard) === shards.length) organizations.delete(organizationId);
    }
  };
}
