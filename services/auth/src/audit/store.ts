import {
  collection,
  insert,
  remove,
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
  indexes: [{ fields: ['_id'] }, { fields: ['action'] }],
  platformIndexes: [{ fields: ['at'] }],
});

export const openAuditEntries = (store: Store, platformStore: PlatformStore) => ({
  /** @throws DuplicateKeyError when the entry exists already */
  create: (entry: AuditEntryRecord): Promise<void> => store.apply(entry.organizationId, [insert(AUDIT_ENTRIES, entry)]),

  /** All of them or none, of any organizations. @throws DuplicateKeyError when one of the entries exists already */
  createAll: (entries: readonly AuditEntryRecord[]): Promise<void> =>
    platformStore.apply(entries.map((entry) => insert(AUDIT_ENTRIES, entry))),

  /** Newest first. An empty `beforeId` starts at the newest; an empty `action` means every action. */
  list: (organizationId: string, beforeId: string, action: string, limit: number): Promise<AuditEntryRecord[]> => {
    const filter = { ...(beforeId === '' ? {} : { _id: { lt: beforeId } }), ...(action === '' ? {} : { action }) };
    return store.find(organizationId, AUDIT_ENTRIES, filter, { sort: [['_id', 'desc']], limit });
  },

  /** Removes up to `limit` entries of all organizations from before `time`; resolves to their number. */
  async removeBefore(time: string, limit: number): Promise<number> {
    const old = await platformStore.find(AUDIT_ENTRIES, { at: { lt: time } }, { sort: [['at', 'asc']], limit });
    await platformStore.apply(old.map(({ _id }) => remove(AUDIT_ENTRIES, { _id }, { optional: true })));
    return old.length;
  },
});
export type AuditEntries = ReturnType<typeof openAuditEntries>;
