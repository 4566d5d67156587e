import {
  collection,
  insert,
  remove,
  update,
  type FindOptions,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';
import { changeFences, insertFences, removeFences, type Fence } from './fences.ts';
import type { Visibility, Visible } from './visibility.ts';
import { foldType } from './rules.ts';

export interface MemoryTypeRecord extends OrganizationDocument {
  type: string;
  typeLower: string;
  displayName: string;
  description: string;
  visibility: Visibility;
  /** Rises when jsonSchema really changes. */
  version: number;
  /** JSON text. */
  jsonSchema: string;
  idSchema: null;
  embeddingSchema: null;
  groupNames: string[];
  relations: string;
  state: 'active';
  /** The epoch that all fences of the type carry. */
  epoch: number;
  /** Rises with every write. */
  revision: number;
  createdAt: string;
  updatedAt: string;
}
/** `_id` is a UUIDv7, so its order is the order of creation. */
export const TYPES = collection<MemoryTypeRecord>('types', {
  scope: 'organization',
  indexes: [{ fields: ['typeLower'], unique: true }, { fields: ['_id'] }, { fields: ['visibility'] }],
});

export function typeStore(store: Store, fenceRows: number) {
  return {
    byId: (organizationId: string, id: string, visible: Visible): Promise<MemoryTypeRecord | undefined> =>
      store.findOne(organizationId, TYPES, { _id: id, ...visible }),
    byName: (organizationId: string, type: string, visible: Visible): Promise<MemoryTypeRecord | undefined> =>
      store.findOne(organizationId, TYPES, { typeLower: foldType(type), ...visible }),
    /** Newest first. */
    list: (
      organizationId: string,
      visible: Visible,
      page: Pick<FindOptions<MemoryTypeRecord>, 'skip' | 'limit'>,
    ): Promise<MemoryTypeRecord[]> => store.find(organizationId, TYPES, visible, { ...page, sort: [['_id', 'desc']] }),

    /** @throws DuplicateKeyError when the name is taken */
    create: (record: MemoryTypeRecord, ops: readonly Op[]): Promise<void> =>
      store.apply(record.organizationId, [insert(TYPES, record), ...insertFences(record, fenceRows), ...ops]),
    /** @throws DuplicateKeyError when the name is taken, ExpectationFailedError when type or fences are not as they were read */
    replace(
      { revision }: MemoryTypeRecord,
      after: MemoryTypeRecord,
      fences: readonly Fence[],
      ops: readonly Op[],
    ): Promise<void> {
      const { _id, organizationId, ...set } = after;
      return store.apply(organizationId, [
        update(TYPES, { _id, revision }, { set }),
        ...changeFences(fences, after),
        ...ops,
      ]);
    },
    /** @throws ExpectationFailedError when type or fences are not as they were read */
    remove: (
      { _id, organizationId, revision }: MemoryTypeRecord,
      fences: readonly Fence[],
      ops: readonly Op[],
    ): Promise<void> =>
      store.apply(organizationId, [remove(TYPES, { _id, revision }), ...removeFences(fences), ...ops]),
  };
}
export type TypeStore = ReturnType<typeof typeStore>;
