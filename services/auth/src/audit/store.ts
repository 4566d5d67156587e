import {
  collection,
  insert,
  remove,
  type Filter,
  type OrganizationDocument,
  type PlatformStore,
  type Store,
} from 'platform/store/store.ts';

/** One entry of the audit trail. `_id` is the id of its event: a UUIDv7, so text order is time order. */
export interface AuditEntryRecord extends OrganizationDocument {
  /** ISO-8601 UTC. */
  at: string;
  /** "server_token.revoke" ... */
  action: string;
  /** "success", "denied" or "failure". */
  outcome: string;
  actorKind: string;
  actorId: string;
  actorName: string;
  /** The operator who acted as this user (AssumeUser); else empty. */
  actorVia: string;
  targetType: string | null;
  targetId: string | null;
  /** The error code of a denial or failure. */
  code: string | null;
  /** How many equal denials this entry stands for; 1 for anything else. */
  count: number;
  requestId: string;
}

export const AUDIT_ENTRIES = collection<AuditEntryRecord>('audit_entries', {
  scope: 'organization',
  columns: {
    ...{ _id: 'id', at: 'text', action: 'text', outcome: 'text', actorKind: 'text', actorId: 'long' },
    ...{ actorName: 'long', actorVia: 'long', targetType: 'long', targetId: 'long', code: 'long' },
    ...{ count: 'number', requestId: 'long' },
  },
  indexes: [
    { fields: ['at'] },
    { fields: ['action', 'at'] },
    { fields: ['actorId', 'at'] },
    { fields: ['actorName', 'at'] },
    { fields: ['targetType', 'targetId', 'at'] },
    { fields: ['outcome', 'at'] },
  ],
  platformIndexes: [{ fields: ['at'] }],
});

/** Entries before one of them, which have all of these properties. */
export interface AuditEntriesQuery extends Filter<AuditEntryRecord> {
  readonly before?: Pick<AuditEntryRecord, 'at' | '_id'> | undefined;
  readonly limit: number;
}

export const openAuditEntries = (store: Store, platformStore: PlatformStore) => ({
  /** @throws DuplicateKeyError when the entry exists already */
  create: (entry: AuditEntryRecord): Promise<void> => store.apply(entry.organizationId, [insert(AUDIT_ENTRIES, entry)]),

  /** All of them or none, of any organizations. @throws DuplicateKeyError when one of the entries exists already */
  createAll: (entries: readonly AuditEntryRecord[]): Promise<void> =>
    platformStore.apply(entries.map((entry) => insert(AUDIT_ENTRIES, entry))),

  byId: (organizationId: string, _id: string): Promise<AuditEntryRecord | undefined> =>
    store.findOne(organizationId, AUDIT_ENTRIES, { _id }),

  /** Newest first, by the time of what happened. */
  list: (organizationId: string, { before, limit, ...filter }: AuditEntriesQuery): Promise<AuditEntryRecord[]> =>
    store.find(organizationId, AUDIT_ENTRIES, filter, {
      sort: [['at', 'desc']],
      limit,
      ...(before && { after: [before.at, before._id] }),
    }),

  /** Removes up to `limit` entries of all organizations from before `time`; resolves to their number. */
  async removeBefore(time: string, limit: number): Promise<number> {
    const old = await platformStore.find(AUDIT_ENTRIES, { at: { lt: time } }, { sort: [['at', 'asc']], limit });
    await platformStore.apply(old.map(({ _id }) => remove(AUDIT_ENTRIES, { _id }, { optional: true })));
    return old.length;
  },
});
export type AuditEntries = ReturnType<typeof openAuditEntries>;
