import { requireWithinLimit, type Principal } from 'platform/core/principal.ts';
import { ServiceError } from 'platform/core/errors.ts';
import {
  collection,
  DuplicateKeyError,
  insert,
  update,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';

/**
 * Counts what an organization stores, in one record for each counter shard (counter-shards.ts). Objects are counted in
 * any of them, so `objects` of one record may be negative and only the sum has a meaning. Types and the bytes of their
 * schemas change seldom and are counted in the record of shard 0.
 */
export interface UsageRecord extends OrganizationDocument {
  /** Number of the counter shard. */
  k: number;
  objects: number;
  types: number;
  schemaBytes: number;
}
export const USAGE = collection<UsageRecord>('usage', { scope: 'organization', indexes: [{ fields: ['k'] }] });

const usageId = (organizationId: string, shard: number): string => `${organizationId}:${shard}`;
const sumOfObjects = (records: readonly UsageRecord[]): number =>
  records.reduce((sum, { objects }) => sum + objects, 0);

/** The methods that return an Op check a limit and make the op for the batch of the change itself. */
export function openUsage(store: Store, shardCount: number) {
  const read = (organizationId: string): Promise<UsageRecord[]> =>
    store.find(organizationId, USAGE, {}, { sort: [['k', 'asc']] });

  /** The record of shard 0. Creates the records of all shards when the organization creates its first type. */
  async function first(organizationId: string): Promise<UsageRecord> {
    const [present] = await read(organizationId);
    if (present) return present;
    const records = Array.from({ length: shardCount }, (_, k): UsageRecord => ({
      _id: usageId(organizationId, k),
      organizationId,
      k,
      objects: 0,
      types: 0,
      schemaBytes: 0,
    }));
    await store
      .apply(
        organizationId,
        records.map((record) => insert(USAGE, record)),
      )
      .catch((error: unknown) => {
        if (!(error instanceof DuplicateKeyError)) throw error;
      });
    return first(organizationId);
  }

  return {
    /** How many objects the organization has. */
    objectCount: async (organizationId: string): Promise<number> => sumOfObjects(await read(organizationId)),

    /**
     * Checks that the organization may have one more object. The tier's cap is never exceeded, even by concurrent
     * requests: it is divided among the shards, and the op expects its record to be below its share. When the record of
     * `shard` is at its share, the object is counted in another record.
     * @returns makes the op that counts the object, for a batch that may write counter shard `shard`
     * @throws ServiceError TIER_LIMIT
     */
    async roomForObject(organizationId: string, principal: Principal): Promise<(shard: number) => Op> {
      const cap = principal.limits.memory_objects;
      const increment = { objects: 1 };
      if (cap === undefined) return (shard) => update(USAGE, { _id: usageId(organizationId, shard) }, { increment });
      const records = await read(organizationId);
      requireWithinLimit(principal, 'memory_objects', sumOfObjects(records));
      const shareOf = ({ k }: UsageRecord): number => Math.floor((cap + k) / records.length);
      const withRoom = records.filter((record) => record.objects < shareOf(record));
      return (shard) => {
        const chosen = withRoom.find(({ k }) => k === shard) ?? withRoom[Math.floor(Math.random() * withRoom.length)]!;
        return update(USAGE, { _id: chosen._id, objects: { lt: shareOf(chosen) } }, { increment });
      };
    },
    /** Counts one object less. */
    removeObject: (organizationId: string, shard: number): Op =>
      update(USAGE, { _id: usageId(organizationId, shard) }, { increment: { objects: -1 } }),

    /**
     * Counts one more type and its schema.
     * @param maxBytes of all schemas of the organization together
     * @throws ServiceError TIER_LIMIT
     */
    async addType(organizationId: string, principal: Principal, schemaBytes: number, maxBytes: number): Promise<Op> {
      const record = await first(organizationId);
      requireWithinLimit(principal, 'memory_types', record.types);
      const cap = principal.limits.memory_types;
      return update(
        USAGE,
        {
          _id: record._id,
          ...requireSchemaRoom(record, schemaBytes, maxBytes),
          ...(cap === undefined ? {} : { types: { lt: cap } }),
        },
        { increment: { types: 1, schemaBytes } },
      );
    },
    /**
     * Counts the bytes that the text of a schema gained, or lost when `growth` is negative.
     * @throws ServiceError TIER_LIMIT
     */
    async resizeSchema(organizationId: string, growth: number, maxBytes: number): Promise<Op> {
      const record = await first(organizationId);
      return update(
        USAGE,
        { _id: record._id, ...requireSchemaRoom(record, growth, maxBytes) },
        { increment: { schemaBytes: growth } },
      );
    },
    /** Counts one type and its schema less. */
    removeType: (organizationId: string, schemaBytes: number): Op =>
      update(USAGE, { _id: usageId(organizationId, 0) }, { increment: { types: -1, schemaBytes: -schemaBytes } }),
  };
}
export type Usage = ReturnType<typeof openUsage>;

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
