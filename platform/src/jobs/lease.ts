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

/** Leave to do what one process at a time does, until `until` (milliseconds of the store's time). */
export interface Lease {
  readonly name: string;
  readonly owner: string;
  /** Rises with each change of owner and never falls: fences what a late former owner writes. */
  readonly epoch: number;
  readonly until: number;
}

interface LeaseDocument extends Document, Omit<Lease, 'name'> {}

export const LEASES = collection<LeaseDocument>('leases', { scope: 'platform' });

/** Resolves to undefined while another owner holds it. An owner that holds it already gets it renewed. */
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
    return (await won(platformStore, insert(LEASES, { _id: name, ...first }))) ? { name, ...first } : undefined;
  }
  if (present.owner === owner)
    return renewLease(platformStore, { name, owner, epoch: present.epoch, until: present.until }, leaseMs);
  if (present.until > now) return undefined;
  const next = { owner, epoch: present.epoch + 1, until };
  const expected = { _id: name, owner: present.owner, epoch: present.epoch, until: present.until };
  return (await won(platformStore, update(LEASES, expected, { set: next }))) ? { name, ...next } : undefined;
}

/** Extends the lease to `leaseMs` from now, also when its time ran out but nobody took it; undefined when it is lost. */
export async function renewLease(
  platformStore: PlatformStore,
  { name, owner, epoch }: Lease,
  leaseMs: number,
): Promise<Lease | undefined> {
  const until = (await platformStore.now()) + leaseMs;
  return (await won(platformStore, update(LEASES, { _id: name, owner, epoch }, { set: { until } })))
    ? { name, owner, epoch, until }
    : undefined;
}

/** Lets another owner have it at once. Does nothing when it is lost already. */
export async function releaseLease(platformStore: PlatformStore, { name, owner, epoch }: Lease): Promise<void> {
  // The row stays, so that its epoch goes on rising.
  await platformStore.apply([update(LEASES, { _id: name, owner, epoch }, { set: { until: 0 } }, { optional: true })]);
}

/** Ends every lease: at the start of a process that owns the store alone, none of them has a living owner. */
export async function clearLeases(platformStore: PlatformStore): Promise<void> {
  const held = await platformStore.find(LEASES, { until: { gt: 0 } });
  await platformStore.apply(held.map(({ _id }) => update(LEASES, { _id }, { set: { until: 0 } })));
}

/**
 * Renews a lease, of which half is left or more, while long work goes on. `signal` aborts when it is lost or could not
 * be renewed in its time. `end` resolves to the lease as it is then, undefined when lost.
 */
export function keepLease(
  platformStore: PlatformStore,
  lease: Lease,
  leaseMs: number,
): { signal: AbortSignal; end(): Promise<Lease | undefined> } {
  const loss = new AbortController();
  let held: Lease | undefined = lease;
  let renewal: Promise<void> | undefined;

  const lose = (): void => {
    held = undefined;
    loss.abort(new Error(`the lease ${lease.name} was lost`));
  };
  let expiry = setTimeout(lose, leaseMs / 2);

  async function renew(current: Lease): Promise<void> {
    const began = performance.now();
    try {
      const renewed = await renewLease(platformStore, current, leaseMs);
      clearTimeout(expiry);
      if (renewed === undefined || held === undefined) return lose();
      held = renewed;
      expiry = setTimeout(lose, leaseMs - (performance.now() - began));
    } catch {
      // The store is down: the next tick tries again, until the lease runs out.
    } finally {
      renewal = undefined;
    }
  }

  const ticks = setInterval(() => {
    if (held !== undefined) renewal ??= renew(held);
  }, leaseMs / 3);
  return {
    signal: loss.signal,
    async end() {
      clearInterval(ticks);
      await renewal;
      clearTimeout(expiry);
      return held;
    },
  };
}

async function won(platformStore: PlatformStore, op: Op): Promise<boolean> {
  try {
    await platformStore.apply([op]);
    return true;
  } catch (error) {
    if (error instanceof DuplicateKeyError || error instanceof ExpectationFailedError) return false;
    throw error;
  }
}
