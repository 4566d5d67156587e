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
 * What an organization holds, in K rows. Objects count on any row (one row alone may fall below zero); types and the bytes
 * of their schemas, which change seldom, on row 0.
 */
export interface Usage extends OrganizationDocument {
  k: number;
  objects: number;
  types: number;
  schemaBytes: number;
}
export const USAGE = collection<Usage>('usage', { scope: 'organization', indexes: [{ fields: ['k'] }] });

const usageId = (organizationId: string, k: number): string => `${organizationId}:${k}`;
const sumOf = (rows: readonly Usage[]): number => rows.reduce((sum, { objects }) => sum + objects, 0);

export function usageStore(store: Store, rows: number) {
  const read = (organizationId: string): Promise<Usage[]> =>
    store.find(organizationId, USAGE, {}, { sort: [['k', 'asc']] });

  /** Row 0; made with the others when the organization's first type comes. */
  async function first(organizationId: string): Promise<Usage> {
    const [present] = await read(organizationId);
    if (present) return present;
    const made = Array.from({ length: rows }, (_, k): Usage => ({
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
        made.map((row) => insert(USAGE, row)),
      )
      .catch((error: unknown) => {
        if (!(error instanceof DuplicateKeyError)) throw error;
      });
    return first(organizationId);
  }

  return {
    /** How many objects the organization has. */
    objects: async (organizationId: string): Promise<number> => sumOf(await read(organizationId)),

    /**
     * Counts one more object on the row that its batch took, within the tier's cap for certain: a row never grows over its
     * share of the cap, and one that is full sends its object to another.
     * @throws ServiceError TIER_LIMIT
     */
    async addObject(organizationId: string, principal: Principal, row: number): Promise<Op> {
      const cap = principal.limits.memory_objects;
      const increment = { objects: 1 };
      if (cap === undefined) return update(USAGE, { _id: usageId(organizationId, row) }, { increment });
      const present = await read(organizationId);
      requireWithinLimit(principal, 'memory_objects', sumOf(present));
      const share = ({ k }: Usage): number => Math.floor((cap + k) / present.length);
      const free = present.filter((one) => one.objects < share(one));
      const chosen = free.find(({ k }) => k === row) ?? free[Math.floor(Math.random() * free.length)]!;
      return update(USAGE, { _id: chosen._id, objects: { lt: share(chosen) } }, { increment });
    },
    removeObject: (organizationId: string, row: number): Op =>
      update(USAGE, { _id: usageId(organizationId, row) }, { increment: { objects: -1 } }),

    /** Counts one more type. @throws ServiceError TIER_LIMIT */
    async addType(organizationId: string, principal: Principal, schemaBytes: number, maxBytes: number): Promise<Op> {
      const row = await first(organizationId);
      requireWithinLimit(principal, 'memory_types', row.types);
      const cap = principal.limits.memory_types;
      const room = requireRoom(row, schemaBytes, maxBytes);
      return update(
        USAGE,
        { _id: row._id, ...room, ...(cap === undefined ? {} : { types: { lt: cap } }) },
        { increment: { types: 1, schemaBytes } },
      );
    },
    /** @param growth bytes that the schema's text gained, or lost when negative @throws ServiceError TIER_LIMIT */
    async resizeSchema(organizationId: string, growth: number, maxBytes: number): Promise<Op> {
      const row = await first(organizationId);
      return update(
        USAGE,
        { _id: row._id, ...requireRoom(row, growth, maxBytes) },
        { increment: { schemaBytes: growth } },
      );
    },
    removeType: (organizationId: string, schemaBytes: number): Op =>
      update(USAGE, { _id: usageId(organizationId, 0) }, { increment: { types: -1, schemaBytes: -schemaBytes } }),
  };
}
export type UsageStore = ReturnType<typeof usageStore>;

/** What the batch expects so that all schemas together stay within `maxBytes`. */
function requireRoom({ schemaBytes }: Usage, growth: number, maxBytes: number): { schemaBytes?: { lte: number } } {
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
