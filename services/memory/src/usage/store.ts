import { requireWithinLimit, type Principal } from 'platform/core/principal.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { counterRecords, countOp, countWithinOps, sumOf, type CounterRecord } from 'platform/store/sharded-counter.ts';
import { collection, update, type Op, type Store } from 'platform/store/store.ts';

/**
 * Counts what an organization stores, in one record for each counter shard. Objects and bytes are counted in any of
 * them, so those of one record may be negative and only the sum has a meaning. Types and the bytes of their schemas
 * change seldom and are counted in the record of shard 0.
 */
export interface UsageRecord extends CounterRecord {
  objects: number;
  types: number;
  /** How many types were ever created. Absent where only a release before it has written. */
  typesCreated?: number;
  schemaBytes: number;
  /** The `bytes` of all types and objects. Absent in a record that only a release before it has written. */
  bytes?: number;
}
export const USAGE = collection<UsageRecord>('usage', {
  scope: 'organization',
  columns: {
    ...{ k: 'number', objects: 'number', types: 'number', typesCreated: 'number' },
    ...{ schemaBytes: 'number', bytes: 'number' },
  },
  indexes: [{ fields: ['k'] }],
});

const ZEROS = { objects: 0, types: 0, typesCreated: 0, schemaBytes: 0, bytes: 0 };

/** The methods that return ops check limits and make ops for the batch of the change itself. */
export function openUsage(store: Store, shardCount: number) {
  const read = (organizationId: string): Promise<UsageRecord[]> =>
    store.find(organizationId, USAGE, {}, { sort: [['k', 'asc']] });
  /** Makes the records when the organization creates its first type. */
  const readOrMake = (organizationId: string): Promise<UsageRecord[]> =>
    counterRecords(store, USAGE, organizationId, { shards: shardCount, zeros: ZEROS });

  return {
    /** How many objects the organization has. */
    objectCount: (organizationId: string): Promise<number> => store.sum(organizationId, USAGE, {}, 'objects'),
    /** The bytes of all its types and objects. */
    storedBytes: (organizationId: string): Promise<number> => store.sum(organizationId, USAGE, {}, 'bytes'),
    /** How many types the organization has, and has ever created. */
    async typeCounts(organizationId: string): Promise<{ types: number; typesCreated: number }> {
      const { types = 0, typesCreated = 0 } = (await store.findOne(organizationId, USAGE, { k: 0 })) ?? {};
      return { types, typesCreated };
    },

    /**
     * Counts written objects. The tier's caps are never exceeded, even by concurrent requests; none applies to objects
     * that take no more than before.
     * @param change.grown whether they take more bytes than before
     * @returns makes the ops that count them, for a batch that may write counter shard `shard`
     * @throws ServiceError TIER_LIMIT
     */
    async changeObjects(
      organizationId: string,
      principal: Principal,
      { objects, bytes, grown }: { objects: number; bytes: number; grown: boolean },
    ): Promise<(shard: number) => Op[]> {
      const change = { ...(objects !== 0 && { objects }), ...(bytes !== 0 && { bytes }) };
      if (objects === 0 && bytes === 0) return () => [];
      const { memory_objects: maxObjects, memory_bytes: maxBytes } = principal.limits;
      const caps = {
        ...(objects > 0 && maxObjects !== undefined && { objects: maxObjects }),
        ...(grown && maxBytes !== undefined && { bytes: maxBytes }),
      };
      if (Object.keys(caps).length === 0) return (shard) => [countOp(USAGE, organizationId, shard, change)];
      const records = await read(organizationId);
      if (objects > 0) requireWithinLimit(principal, 'memory_objects', sumOf(records, 'objects'), objects);
      if (grown) requireWithinLimit(principal, 'memory_bytes', sumOf(records, 'bytes'), bytes);
      return (shard) => countWithinOps(USAGE, records, shard, change, caps);
    },
    /** Counts documents that are stored and not counted yet; no limit applies. */
    async countStored(organizationId: string, shard: number, bytes: number): Promise<Op[]> {
      await readOrMake(organizationId);
      return [countOp(USAGE, organizationId, shard, { bytes })];
    },
    /**
     * Counts one more type, its schema and its bytes.
     * @param maxSchemaBytes of all schemas of the organization together
     * @throws ServiceError TIER_LIMIT
     */
    async addType(
      organizationId: string,
      principal: Principal,
      { schemaBytes, bytes }: { schemaBytes: number; bytes: number },
      maxSchemaBytes: number,
    ): Promise<Op[]> {
      const records = await readOrMake(organizationId);
      const [first] = records as [UsageRecord];
      requireWithinLimit(principal, 'memory_types', first.types);
      const cap = principal.limits.memory_types;
      const room = requireSchemaRoom(first, schemaBytes, maxSchemaBytes);
      return [
        update(
          USAGE,
          { _id: first._id, ...room, ...(cap === undefined ? {} : { types: { lt: cap } }) },
          { increment: { types: 1, typesCreated: 1, schemaBytes } },
        ),
        ...typeBytesOps(principal, records, bytes),
      ];
    },
    /**
     * Counts what a changed type and its schema gained, or lost where a number is negative. No limit applies to what
     * is not larger than before.
     * @param sizes.grown whether the type takes more bytes than before
     * @throws ServiceError TIER_LIMIT
     */
    async resizeType(
      organizationId: string,
      principal: Principal,
      { schemaBytes, bytes, grown }: { schemaBytes: number; bytes: number; grown: boolean },
      maxSchemaBytes: number,
    ): Promise<Op[]> {
      if (schemaBytes === 0 && bytes === 0) return [];
      const records = await readOrMake(organizationId);
      const [first] = records as [UsageRecord];
      const room = requireSchemaRoom(first, schemaBytes, maxSchemaBytes);
      return [
        update(USAGE, { _id: first._id, ...room }, { increment: { schemaBytes } }),
        ...(grown ? typeBytesOps(principal, records, bytes) : [countOp(USAGE, organizationId, 0, { bytes })]),
      ];
    },
    /** Counts again what a type had before a change that was not made; no limit applies. */
    restoreType: (organizationId: string, change: { schemaBytes: number; bytes: number }): Op[] =>
      change.schemaBytes === 0 && change.bytes === 0 ? [] : [countOp(USAGE, organizationId, 0, change)],
    /** Counts one type, its schema and its bytes less. */
    removeType: (organizationId: string, { schemaBytes, bytes }: { schemaBytes: number; bytes: number }): Op =>
      countOp(USAGE, organizationId, 0, { types: -1, schemaBytes: -schemaBytes, bytes: -bytes }),
  };
}
export type Usage = ReturnType<typeof openUsage>;

/** @throws ServiceError TIER_LIMIT */
function typeBytesOps(principal: Principal, records: readonly UsageRecord[], bytes: number): Op[] {
  const cap = principal.limits.memory_bytes;
  requireWithinLimit(principal, 'memory_bytes', sumOf(records, 'bytes'), bytes);
  return countWithinOps(USAGE, records, 0, { bytes }, cap === undefined ? {} : { bytes: cap });
}

/**
 * What the batch must expect so that all schemas of the organization together stay within `maxBytes`.
 * @throws ServiceError TIER_LIMIT when they would exceed it
 */
function requireSchemaRoom(
  { schemaBytes }: UsageRecord,
  growth: number,
  maxBytes: number,
): { schemaBytes?: { lte: number } } {
  if (growth <= 0) return {};
  if (schemaBytes + growth > maxBytes) {
    throw new ServiceError(
      'TIER_LIMIT',
      `The jsonSchemas of an organization may hold at most ${maxBytes} bytes in all`,
      { facts: { limit: 'memory_schema_bytes' } },
    );
  }
  return { schemaBytes: { lte: maxBytes - growth } };
}
