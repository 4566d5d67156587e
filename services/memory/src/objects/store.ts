import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import {
  collection,
  type Expectation,
  type Filter,
  type FindOptions,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';
import { visibleTo } from '../types/rules.ts';
import type { MemoryTypes, TypeHeader } from '../types/store.ts';

export interface MemoryObjectRecord extends OrganizationDocument {
  /** Never changes. */
  typeId: string;
  /** Unique in the type; never changes. */
  key: string;
  /**
   * JSON text, as the request to this service carried it. The gateway has removed white space and needless escapes, so
   * a REST client gets back an equal value, but not always the same bytes.
   */
  content: string;
  /** Version of the type whose schema the content was validated against. */
  schemaVersion: number;
  /** From 1; rises with every write. */
  revision: number;
  /** What usage counts of it. Absent while it is not counted: a release before byte counts wrote it. */
  bytes?: number;
  /** How many objects it refers to; absent: none (references/store.ts). */
  references?: number;
  /** How many references to it there are; absent: none. */
  referrers?: number;
  createdAt: string;
  updatedAt: string;
}
/** An object whose content was not read. */
export type BareObject = Omit<MemoryObjectRecord, 'content'> & { content?: string };
/** `_id` is a UUIDv7, so objects sorted by `_id` are in the order of their creation. */
export const OBJECTS = collection<MemoryObjectRecord>('objects', {
  scope: 'organization',
  columns: {
    ...{ _id: 'id', typeId: 'id', key: 'text', schemaVersion: 'number', revision: 'number', bytes: 'number' },
    ...{ createdAt: 'text', updatedAt: 'text', content: 'long' },
  },
  // The key comes first, so that objects of all types can be found by key.
  indexes: [{ fields: ['key', 'typeId'], unique: true }, { fields: ['_id'] }, { fields: ['typeId'] }],
  platformIndexes: [{ fields: ['bytes'], only: 'null' }],
});

/** What a batch that writes the object expects; with the bytes, because the job `count-bytes` changes nothing else. */
export const asRead = ({ _id, revision, bytes }: BareObject): Expectation<MemoryObjectRecord> => ({
  _id,
  revision,
  bytes: bytes ?? null,
});

export type ObjectFilter = Pick<Filter<MemoryObjectRecord>, 'typeId' | 'key'>;

export function openMemoryObjects(store: Store) {
  return {
    byId: (organizationId: string, id: string): Promise<MemoryObjectRecord | undefined> =>
      store.findOne(organizationId, OBJECTS, { _id: id }),
    /** Newest first. */
    list: (
      organizationId: string,
      filter: ObjectFilter,
      page: Pick<FindOptions<MemoryObjectRecord>, 'skip' | 'limit' | 'maxBytes' | 'after' | 'omit'>,
    ): Promise<MemoryObjectRecord[]> =>
      store.find(organizationId, OBJECTS, filter, { ...page, sort: [['_id', 'desc']] }),
    /** Those that are newer than the object with this id, the one next to it last; newest first. */
    async listNewer(
      organizationId: string,
      filter: ObjectFilter,
      id: string,
      page: Pick<FindOptions<MemoryObjectRecord>, 'limit' | 'maxBytes' | 'omit'>,
    ): Promise<MemoryObjectRecord[]> {
      const found = await store.find(organizationId, OBJECTS, filter, { ...page, after: [id], sort: [['_id', 'asc']] });
      return found.reverse();
    },
    /** Those of a type in the order of their ids, from the one after `after` on. */
    ofType: (
      organizationId: string,
      typeId: string,
      { limit, after = '' }: { limit: number; after?: string },
    ): Promise<MemoryObjectRecord[]> =>
      store.find(organizationId, OBJECTS, { typeId }, { limit, ...(after !== '' && { after: [after] }) }),
    /** The first of a type, without their contents. */
    anyOfType: (organizationId: string, typeId: string, limit: number): Promise<BareObject[]> =>
      store.find(organizationId, OBJECTS, { typeId }, { limit, omit: ['content'] }),
    /** Objects without their contents, by id. */
    async bareByIds(organizationId: string, ids: readonly string[]): Promise<Map<string, BareObject>> {
      if (ids.length === 0) return new Map();
      const found = await store.find(organizationId, OBJECTS, { _id: { in: ids } }, { omit: ['content'] });
      return new Map(found.map((object) => [object._id, object]));
    },
    count: (organizationId: string, filter: ObjectFilter): Promise<number> =>
      store.count(organizationId, OBJECTS, filter),

    /** The ids of the objects of a type that have these keys, by key. */
    async idsByKey(organizationId: string, typeId: string, keys: readonly string[]): Promise<Map<string, string>> {
      const found = await store.find(organizationId, OBJECTS, { typeId, key: { in: keys } }, { omit: ['content'] });
      return new Map(found.map(({ _id, key }) => [key, _id]));
    },
    byKey: (organizationId: string, typeId: string, key: string): Promise<MemoryObjectRecord | undefined> =>
      store.findOne(organizationId, OBJECTS, { typeId, key }),
    /** One batch; `grouped-writes.ts` makes it. */
    apply: (organizationId: string, ops: readonly Op[]): Promise<void> => store.apply(organizationId, ops),
  };
}
export type MemoryObjects = ReturnType<typeof openMemoryObjects>;

/**
 * The object with this id and its type, if the principal may see them.
 * @throws ServiceError NOT_FOUND; the same for a malformed id, an unknown one, one of another organization, and one
 * that the principal may not see
 */
export async function requireObject(
  { objects, types }: { objects: MemoryObjects; types: MemoryTypes },
  context: CallContext,
  id: string,
): Promise<{ object: MemoryObjectRecord; type: TypeHeader }> {
  const organizationId = organizationOfCall(context);
  const object = await objects.byId(organizationId, id.toLowerCase());
  const type = object && (await types.header(organizationId, object.typeId, visibleTo(context.principal)));
  if (!object || !type) throw new ServiceError('NOT_FOUND', 'Memory object not found');
  return { object, type };
}
