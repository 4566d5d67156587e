import { sharedInTurn } from 'platform/core/shared-in-turn.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Principal } from 'platform/core/principal.ts';
import {
  collection,
  insert,
  remove,
  update,
  type Expectation,
  type Filter,
  type FindOptions,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';
import { changeFences, insertFences, removeFences, type FenceRecord } from './fences.ts';
import {
  audienceOf,
  named,
  visibleTo,
  type Definition,
  type TypeState,
  type Visibility,
  type VisibilityFilter,
} from './rules.ts';

export interface MemoryTypeRecord extends OrganizationDocument, Definition {
  /** The name. */
  type: string;
  /** The name as `foldTypeName` gives it. */
  typeLower: string;
  displayName: string;
  description: string;
  visibility: Visibility;
  /** From 1; rises when the definition changes in more than spaces, order of members and spelling of numbers. */
  version: number;
  groupNames: string[];
  /** Made of visibility and groupNames (`audienceOf`), for filters. */
  audience: string[];
  /** Ids of other types that its relations point to, sorted. Absent in what a release before relations wrote. */
  relationTargets?: string[];
  /** How many other types have relations that point to this one. */
  dependents?: number;
  /** Rises with every batch that relies on it as the target of a relation: one that changes nothing else of it. */
  relied?: number;
  state: TypeState;
  /** While the type changes: JSON text of the fields that it is to have (NextType). */
  next?: string | null;
  /** The epoch in all fences of the type; rises when objects must obey more than before (fences.ts). */
  epoch: number;
  /** From 1; rises with every write. */
  revision: number;
  /** What usage counts of it. Absent while it is not counted: a release before byte counts wrote it. */
  bytes?: number;
  createdAt: string;
  updatedAt: string;
}
/** What may be long, or is not asked for often. */
const LONG = ['jsonSchema', 'idSchema', 'embeddingSchema', 'relations', 'next', 'description'] as const;
/** A type without its long members: what a read of objects needs to know of it. */
export type TypeHeader = Omit<MemoryTypeRecord, (typeof LONG)[number]>;

/** `_id` is a UUIDv7, so types sorted by `_id` are in the order of their creation. */
export const TYPES = collection<MemoryTypeRecord>('types', {
  scope: 'organization',
  columns: {
    ...{ _id: 'id', bytes: 'number', description: 'long', next: 'long' },
    ...{ relations: 'long', idSchema: 'long', embeddingSchema: 'long', jsonSchema: 'long' },
  },
  indexes: [
    { fields: ['typeLower'], unique: true },
    { fields: ['_id'] },
    { fields: ['audience'], elements: true },
    { fields: ['relationTargets'], elements: true },
  ],
  version: 2,
  upgrades: { 1: ({ visibility }: MemoryTypeRecord) => ({ audience: audienceOf({ visibility, groupNames: [] }) }) },
  platformIndexes: [{ fields: ['bytes'], only: 'null' }],
});

/**
 * What a batch that writes the type expects: with the epoch, because the announcement of a change raises nothing else,
 * with `dependents` and `relied`, because relations of another type change nothing else, and with the bytes, because
 * the job `count-bytes` changes nothing else.
 */
export const asRead = ({
  _id,
  revision,
  epoch,
  dependents,
  relied,
  bytes,
}: MemoryTypeRecord): Expectation<MemoryTypeRecord> => ({
  _id,
  revision,
  epoch,
  dependents: dependents ?? null,
  relied: relied ?? null,
  bytes: bytes ?? null,
});

/** What an audit entry may say of a type: no content, such as its schema. */
export const auditedFields = ({ type, displayName, visibility, groupNames, version }: MemoryTypeRecord) => ({
  ...{ type, displayName, visibility, groupNames, version },
});

/** @param shardCount number of fences of every type */
export function openMemoryTypes(store: Store, shardCount: number) {
  // Requests that arrive together are often for objects of one type.
  const wholeInTurn = sharedInTurn<MemoryTypeRecord | undefined>();
  const headerInTurn = sharedInTurn<TypeHeader | undefined>();
  const headersInTurn = sharedInTurn<TypeHeader[]>();

  return {
    byId: (organizationId: string, id: string, visible: VisibilityFilter): Promise<MemoryTypeRecord | undefined> =>
      wholeInTurn(organizationId, [id, visible], () => store.findOne(organizationId, TYPES, { _id: id, ...visible })),
    byName: (organizationId: string, type: string, visible: VisibilityFilter): Promise<MemoryTypeRecord | undefined> =>
      store.findOne(organizationId, TYPES, named(type, visible)),
    header: (organizationId: string, id: string, visible: VisibilityFilter): Promise<TypeHeader | undefined> =>
      headerInTurn(organizationId, [id, visible], async () => {
        const [header] = await store.find(organizationId, TYPES, { _id: id, ...visible }, { limit: 1, omit: LONG });
        return header;
      }),
    headers: (
      organizationId: string,
      filter: Pick<Filter<MemoryTypeRecord>, '_id' | 'typeLower' | 'audience'>,
    ): Promise<TypeHeader[]> =>
      headersInTurn(organizationId, [filter], () => store.find(organizationId, TYPES, filter, { omit: LONG })),
    count: (organizationId: string, visible: VisibilityFilter): Promise<number> =>
      store.count(organizationId, TYPES, visible),
    /** Newest first. */
    list: (
      organizationId: string,
      visible: VisibilityFilter,
      page: Pick<FindOptions<MemoryTypeRecord>, 'skip' | 'limit' | 'maxBytes'>,
    ): Promise<MemoryTypeRecord[]> => store.find(organizationId, TYPES, visible, { ...page, sort: [['_id', 'desc']] }),

    /** The other types whose relations point to this one. */
    dependentsOf: (organizationId: string, id: string): Promise<MemoryTypeRecord[]> =>
      store.find(organizationId, TYPES, { relationTargets: { containsAny: [id] } }),

    /** @throws DuplicateKeyError when the name is taken */
    create: (record: MemoryTypeRecord, ops: readonly Op[]): Promise<void> =>
      store.apply(record.organizationId, [insert(TYPES, record), ...insertFences(record, shardCount), ...ops]),
    /** @throws DuplicateKeyError when the name is taken; ExpectationFailedError when the type or a fence has changed */
    change(
      before: MemoryTypeRecord,
      after: MemoryTypeRecord,
      fences: readonly FenceRecord[],
      ops: readonly Op[],
    ): Promise<void> {
      const { _id, organizationId, ...set } = after;
      return store.apply(organizationId, [
        update(TYPES, asRead(before), { set }),
        ...changeFences(fences, after),
        ...ops,
      ]);
    },
    /** @throws ExpectationFailedError when the type or a fence has changed */
    remove: (type: MemoryTypeRecord, fences: readonly FenceRecord[], ops: readonly Op[]): Promise<void> =>
      store.apply(type.organizationId, [remove(TYPES, asRead(type)), ...removeFences(fences), ...ops]),
  };
}
export type MemoryTypes = ReturnType<typeof openMemoryTypes>;

/**
 * The type with this id, if the principal may see it.
 * @throws ServiceError NOT_FOUND; the same for a malformed id, an unknown one, one of another organization, and one
 * that the principal may not see
 */
export async function requireType(types: MemoryTypes, context: CallContext, id: string): Promise<MemoryTypeRecord> {
  const type = await types.byId(organizationOfCall(context), id.toLowerCase(), visibleTo(context.principal));
  if (!type) throw new ServiceError('NOT_FOUND', 'Memory type not found');
  return type;
}

/** @throws ServiceError ALREADY_EXISTS, with the id of the type that has the name if the principal may see that type */
export async function requireFreeName(
  types: MemoryTypes,
  principal: Principal,
  organizationId: string,
  name: string,
): Promise<void> {
  if (!(await types.byName(organizationId, name, {}))) return;
  const visible = await types.byName(organizationId, name, visibleTo(principal));
  throw new ServiceError('ALREADY_EXISTS', 'A memory type of this name exists', {
    facts: visible ? { id: visible._id } : {},
  });
}
