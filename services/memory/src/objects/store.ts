import { ServiceError } from 'platform/core/errors.ts';
import {
  collection,
  DuplicateKeyError,
  insert,
  remove,
  update,
  type Filter,
  type FindOptions,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';

export interface MemoryObjectRecord extends OrganizationDocument {
  typeId: string;
  key: string;
  /** JSON text, as the client gave it. */
  content: string;
  /** Version of the type that the content was checked against. */
  schemaVersion: number;
  /** Rises with every write. */
  revision: number;
  createdAt: string;
  updatedAt: string;
}
/** `_id` is a UUIDv7, so its order is the order of creation. */
export const OBJECTS = collection<MemoryObjectRecord>('objects', {
  scope: 'organization',
  indexes: [
    { fields: ['typeId', 'key'], unique: true },
    { fields: ['_id'] },
    { fields: ['typeId'] },
    { fields: ['key'] },
  ],
});

export type ObjectFilter = Pick<Filter<MemoryObjectRecord>, 'typeId' | 'key'>;

export function objectStore(store: Store) {
  return {
    byId: (organizationId: string, id: string): Promise<MemoryObjectRecord | undefined> =>
      store.findOne(organizationId, OBJECTS, { _id: id }),
    /** Newest first. */
    list: (
      organizationId: string,
      filter: ObjectFilter,
      page: Pick<FindOptions<MemoryObjectRecord>, 'skip' | 'limit'>,
    ): Promise<MemoryObjectRecord[]> =>
      store.find(organizationId, OBJECTS, filter, { ...page, sort: [['_id', 'desc']] }),
    count: (organizationId: string, filter: ObjectFilter): Promise<number> =>
      store.count(organizationId, OBJECTS, filter),

    /** @throws ServiceError ALREADY_EXISTS with the id of the object that has the key; ExpectationFailedError */
    async create(record: MemoryObjectRecord, ops: readonly Op[]): Promise<void> {
      const { organizationId, typeId, key } = record;
      try {
        await store.apply(organizationId, [insert(OBJECTS, record), ...ops]);
      } catch (error) {
        const taken =
          error instanceof DuplicateKeyError && (await store.findOne(organizationId, OBJECTS, { typeId, key }));
        if (taken)
          throw new ServiceError('ALREADY_EXISTS', 'The memory type has an object with this key', {
            facts: { id: taken._id },
          });
        throw error;
      }
    },
    /** @throws ExpectationFailedError when the object is not as it was read */
    replace({ revision }: MemoryObjectRecord, after: MemoryObjectRecord, ops: readonly Op[]): Promise<void> {
      const { _id, organizationId, ...set } = after;
      return store.apply(organizationId, [update(OBJECTS, { _id, revision }, { set }), ...ops]);
    },
    /** @throws ExpectationFailedError when the object is not as it was read */
    remove: ({ _id, organizationId, revision }: MemoryObjectRecord, ops: readonly Op[]): Promise<void> =>
      store.apply(organizationId, [remove(OBJECTS, { _id, revision }), ...ops]),
  };
}
export type ObjectStore = ReturnType<typeof objectStore>;
