import type { CounterShards } from 'platform/jobs/counter-shards.ts';
import { organizationOf, requireWithinLimit, type Principal } from 'platform/core/principal.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { counterRecords, countOp, countWithinOps, sumOf, type CounterRecord } from 'platform/store/sharded-counter.ts';
import { collection, DuplicateKeyError, type Op, type Store } from 'platform/store/store.ts';
import { writeGroups, type GroupedWrite } from 'platform/store/write-groups.ts';

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

/**
 * While runs wait for a runner, others end soon, and a commit that their ends share spares processor time in each
 * process through which the answers pass. So an end waits this long for each run that waits for a runner (ADR 28).
 */
const WAIT_FOR_EACH_MS = 1;
const MAX_WAIT_MS = 20;

/** A run is recorded and ended whether or not its client waits. */
const never = new AbortController().signal;

/** Operations of one batch, and by how much they change the stored bytes of the organization. */
export interface CountedWrite extends GroupedWrite {
  ops: readonly Op[];
}

/** A run that begins: its write may be refused, by the limit of its principal's tier. */
interface Growth extends CountedWrite {
  principal: Principal;
}
interface Change extends CountedWrite {
  organizationId: string;
}

/**
 * Counts what an organization stores. A change and what it adds to the counter are one batch; those of one event-loop
 * turn and organization share it, and the counter is written once for all of them. Ends also wait for others.
 * @param runsWaiting how many runs wait for a runner
 */
export function openUsage(
  store: Store,
  counterShards: Pick<CounterShards, 'count' | 'withShard'>,
  runsWaiting: () => number = () => 0,
) {
  const records = (organizationId: string): Promise<UsageRecord[]> =>
    counterRecords(store, USAGE, organizationId, { shards: counterShards.count, zeros: { bytes: 0 } });

  /** The organization has records by then. */
  const countStored = (
    organizationId: string,
    bytes: number,
    write: (counting: readonly Op[]) => Promise<void>,
  ): Promise<void> =>
    bytes === 0
      ? write([])
      : counterShards.withShard(organizationId, never, (shard) =>
          write([countOp(USAGE, organizationId, shard, { bytes })]),
        );

  const grow = writeGroups<Growth>(async (group) => {
    const { principal } = group[0]!;
    const organizationId = organizationOf(principal);
    const cap = principal.limits.execution_bytes;
    const { ops, bytes } = together(group);
    await counterShards.withShard(organizationId, never, async (shard) => {
      const present = await records(organizationId);
      requireWithinLimit(principal, 'execution_bytes', sumOf(present, 'bytes'), bytes);
      const counting = countWithinOps(USAGE, present, shard, { bytes }, cap === undefined ? {} : { bytes: cap });
      await store.apply(organizationId, [...ops, ...counting]);
    });
  });

  const change = writeGroups<Change>(
    async (group) => {
      const { organizationId } = group[0]!;
      const { ops, bytes } = together(group);
      await countStored(organizationId, bytes, (counting) => store.apply(organizationId, [...ops, ...counting]));
    },
    () => Math.min(MAX_WAIT_MS, runsWaiting() * WAIT_FOR_EACH_MS),
  );

  return {
    /** The bytes of all executions and payloads of the organization. */
    storedBytes: async (organizationId: string): Promise<number> => sumOf(await records(organizationId), 'bytes'),

    /**
     * Applies a batch that stores more, and counts it. What concurrent calls count never exceeds the tier's limit.
     * @throws ServiceError TIER_LIMIT; DuplicateKeyError
     */
    async grow(principal: Principal, write: CountedWrite): Promise<void> {
      // the whole group is checked against the limit of its first write
      const limit = String(principal.limits.execution_bytes);
      const duplicate = await retryOnConflict(never, () =>
        grow(organizationOf(principal), limit, { ...write, principal }).catch(asDuplicate),
      );
      if (duplicate) throw duplicate;
    },

    /**
     * Applies a batch of what a run produced, or of what is removed, and counts it; no limit applies. The organization
     * has records by then.
     * @throws ExpectationFailedError
     */
    change: (organizationId: string, write: CountedWrite): Promise<void> =>
      change(organizationId, '', { ...write, organizationId }),

    /** Counts documents that are stored and not counted yet; `write` applies their batch. No limit applies. */
    async countStored(...[organizationId, bytes, write]: Parameters<typeof countStored>): Promise<void> {
      await records(organizationId);
      await countStored(organizationId, bytes, write);
    },
  };
}

/** A key that is taken stays taken, so another attempt would fail alike. */
const asDuplicate = (error: unknown): DuplicateKeyError => {
  if (error instanceof DuplicateKeyError) return error;
  throw error;
};

const together = (group: readonly CountedWrite[]): CountedWrite => ({
  ops: group.flatMap(({ ops }) => ops),
  bytes: group.reduce((sum, { bytes }) => sum + bytes, 0),
});
export type Usage = ReturnType<typeof openUsage>;
