import {
  collection,
  insert,
  remove,
  type OrganizationDocument,
  type PlatformStore,
  type Store,
} from 'platform/store/store.ts';

/** `_id` is the id of the event that told of it: a UUIDv7, so that text order is time order. */
export interface AuditEntry extends OrganizationDocument {
  at: string;
  action: string;
  outcome: string;
  actorKind: string;
  actorId: string;
  actorName: string;
  actorVia: string;
  targetType: string | null;
  targetId: string | null;
  code: string | null;
  count: number;
  requestId: string;
}

export const AUDIT_ENTRIES = collection<AuditEntry>('audit_entries', {
  scope: 'organization',
  indexes: [{ fields: ['_id'] }, { fields: ['action'] }],
  platformIndexes: [{ fields: ['at'] }],
});

export const openAuditTrail = (store: Store, platformStore: PlatformStore) => ({
  /** @throws DuplicateKeyError when the entry is there already */
  insert: (entry: AuditEntry): Promise<void> => store.apply(entry.organizationId, [insert(AUDIT_ENTRIES, entry)]),

  /** Newest first; an empty `beforeId` starts at the newest, an empty `action` means any. */
  list: (organizationId: string, beforeId: string, action: string, limit: number): Promise<AuditEntry[]> => {
    const filter = { ...(beforeId === '' ? {} : { _id: { lt: beforeId } }), ...(action === '' ? {} : { action }) };
    return store.find(organizationId, AUDIT_ENTRIES, filter, { sort: [['_id', 'desc']], limit });
  },

  /** Removes up to `limit` entries of whatever organization that are older; resolves to their number. */
  async removeBefore(time: string, limit: number): Promise<number> {
    const old = await platformStore.find(AUDIT_ENTRIES, { at: { lt: time } }, { sort: [['at', 'asc']], limit });
    await platformStore.apply(old.map(({ _id }) => remove(AUDIT_ENTRIES, { _id }, { optional: true })));
    return old.length;
  },
});
export type AuditTrail = ReturnType<typeof openAuditTrail>;
