import {
  collection,
  DuplicateKeyError,
  ExpectationFailedError,
  insert,
  update,
  type Document,
  type Op,
  type PlatformStore,
} from '../store/store.ts';

/** The exclusive right of one process to do some work, until `until` (milliseconds since 1970 by the store's clock). */
export interface Lease {
  readonly name: string;
  readonly owner: string;
  /** Rises with each change of owner and never falls. A write that expects it fails for a former owner. */
  readonly epoch: number;
  readonly until: number;
}

interface LeaseRecord extends Document, Omit<Lease, 'name'> {}

export const LEASES = collection<LeaseRecord>('leases', { scope: 'platform' });

/** Acquires the lease for `leaseMs`, or renews it for its owner. Resolves to undefined while another owner holds it. */
export async function acquireLease(
  platformStore: PlatformStore,
  name: string,
  owner: string,
  leaseMs: number,
): Promise<Lease | undefined> {
  const now = await platformStore.now();
  const until = now + leaseMs;
  const present = await platformStore.findOne(LEASES, { _id: name });
  if (present === undefined) {
    const first = { owner, epoch: 1, until };
    return (await applied(platformStore, insert(LEASES, { _id: name, ...first }))) ? { name, ...first } : undefined;
  }
  if (present.owner === owner)
    return renewLease(platformStore, { name, owner, epoch: present.epoch, until: present.until }, leaseMs);
  if (present.until > now) return undefined;
  const next = { owner, epoch: present.epoch + 1, until };
  const expected = { _id: name, owner: present.owner, epoch: present.epoch, until: present.until };
  return (await applied(platformStore, update(LEASES, expected, { set: next }))) ? { name, ...next } : undefined;
}

/** Extends the lease to `leaseMs` from now, even after it expired. Resolves to undefined when another owner took it. */
export async function renewLease(
  platformStore: PlatformStore,
  { name, owner, epoch }: Lease,
  leaseMs: number,
): Promise<Lease | undefined> {
  const until = (await platformStore.now()) + leaseMs;
  return (await applied(platformStore, update(LEASES, { _id: name, owner, epoch }, { set: { until } })))
    ? { name, owner, epoch, until }
    : undefined;
}

/** Lets another owner acquire the lease at once. Does nothing when it is lost already. */
export async function releaseLease(platformStore: PlatformStore, { name, owner, epoch }: Lease): Promise<void> {
  // The record stays, so that the epoch continues to rise.
  await platformStore.apply([update(LEASES, { _id: name, owner, epoch }, { set: { until: 0 } }, { optional: true })]);
}

/** Ends every lease. For the start of a process that no other process shares the store with: all owners are dead. */
export async function clearLeases(platformStore: PlatformStore): Promise<void> {
  const held = await platformStore.find(LEASES, { until: { gt: 0 } });
  await platformStore.apply(held.map(({ _id }) => update(LEASES, { _id }, { set: { until: 0 } })));
}

/**
 * Renews a lease until `end` is called. At least half of the lease time must be left at the call. `signal` aborts
 * when the lease is lost or could not be renewed before it expired. `end` resolves to the lease, or to undefined when
 * it was lost.
 */
export function keepLease(
  platformStore: PlatformStore,
  lease: Lease,
  leaseMs: number,
): { signal: AbortSignal; end(): Promise<Lease | undefined> } {
  const lost = new AbortController();
  let held: Lease | undefined = lease;
  let renewal: Promise<void> | undefined;

  const lose = (): void => {
    held = undefined;
    lost.abort(new Error(`the lease ${lease.name} was lost`));
  };
  let expiry = setTimeout(lose, leaseMs / 2);

  async function renew(current: Lease): Promise<void> {
    const startedAt = performance.now();
    try {
      const renewed = await renewLease(platformStore, current, leaseMs);
      clearTimeout(expiry);
      if (renewed === undefined || held === undefined) return lose();
      held = renewed;
      expiry = setTimeout(lose, leaseMs - (performance.now() - startedAt));
    } catch {
      // The store is not available: the next tick tries again until the lease expires.
    } finally {
      renewal = undefined;
    }
  }

  const ticks = setInterval(() => {
    if (held !== undefined) renewal ??= renew(held);
  }, leaseMs / 3);
  return {
    signal: lost.signal,
    async end() {
      clearInterval(ticks);
      await renewal;
      clearTimeout(expiry);
      return held;
    },
  };
}

/** False when another process was faster. */
async function applied(platformStore: PlatformStore, op: Op): Promise<boolean> {
  try {
    await platformStore.apply([op]);
    return true;
  } catch (error) {
    if (error instanceof DuplicateKeyError || error instanceof ExpectationFailedError) return false;
    throw error;
  }
}
