import type { CounterShards } from 'platform/jobs/counter-shards.ts';
import { organizationOf, requireWithinLimit, type Principal } from 'platform/core/principal.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { counterRecords, countOp, countWithinOps, sumOf, type CounterRecord } from 'platform/store/sharded-counter.ts';
import { collection, type Op, type Store } from 'platform/store/store.ts';

/** Counts what an organization stores, in one record for each counter shard: only the sum has a meaning. */
export interface UsageRecord extends CounterRecord {
  /** The `bytes` of all executions and payloads. */
  bytes: number;
}
export const USAGE = collection<UsageRecord>('usage', {
  scope: 'organization',
  columns: { k: 'number', bytes: 'number' },
  indexes: [{ fields: ['k'] }],
});

/** A run is recorded and ended whether or not its client waits. */
const never = new AbortController().signal;

/** Writes the batch of a change; `counting` is part of it. */
type Write<T> = (counting: readonly Op[]) => Promise<T>;

export function openUsage(store: Store, counterShards: Pick<CounterShards, 'count' | 'withShard'>) {
  const records = (organizationId: string): Promise<UsageRecord[]> =>
    counterRecords(store, USAGE, organizationId, { shards: counterShards.count, zeros: { bytes: 0 } });

  /** Counts what a run produced, or what was removed; no limit applies. The organization has records by then. */
  const change = <T>(organizationId: string, bytes: number, write: Write<T>): Promise<T> =>
    bytes === 0
      ? write([])
      : counterShards.withShard(organizationId, never, (shard) =>
          write([countOp(USAGE, organizationId, shard, { bytes })]),
        );

  return {
    /** The bytes of all executions and payloads of the organization. */
    storedBytes: async (organizationId: string): Promise<number> => sumOf(await records(organizationId), 'bytes'),

    /**
     * Counts a new execution. What concurrent calls count never exceeds the tier's limit. Repeats `write` when its
     * batch conflicts with another one.
     * @throws ServiceError TIER_LIMIT
     */
    grow<T>(principal: Principal, bytes: number, write: (counting: readonly Op[]) => Promise<T>): Promise<T> {
      const organizationId = organizationOf(principal);
      const cap = principal.limits.execution_bytes;
      const attempt = async (shard: number): Promise<T> => {
        const present = await records(organizationId);
        requireWithinLimit(principal, 'execution_bytes', sumOf(present, 'bytes'), bytes);
        return write(countWithinOps(USAGE, present, shard, { bytes }, cap === undefined ? {} : { bytes: cap }));
      };
      return retryOnConflict(never, () => counterShards.withShard(organizationId, never, attempt));
    },

    change,

    /** Counts documents that are stored and not counted yet; no limit applies. */
    async countStored(organizationId: string, bytes: number, write: Write<void>): Promise<void> {
      await records(organizationId);
      await change(organizationId, bytes, write);
    },
  };
}
export type Usage = ReturnType<typeof openUsage>;
