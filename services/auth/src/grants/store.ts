import {
  collection,
  insert,
  remove,
  update,
  type Op,
  type OrganizationDocument,
  type PlatformStore,
  type Store,
} from 'platform/store/store.ts';

/** The right of a client program to act for a user of an organization. */
export interface GrantRecord extends OrganizationDocument {
  userId: string;
  /** When it was given. */
  email: string;
  /** Of the program: "admin-cli". */
  clientId: string;
  createdAt: string;
  /** Name of the operator who gave it. */
  createdBy: string;
  expiresAt: string;
  revokedAt: string | null;
}

export const GRANTS = collection<GrantRecord>('grants', {
  scope: 'organization',
  indexes: [{ fields: ['_id'] }],
  platformIndexes: [{ fields: ['expiresAt'] }],
});

export const openGrants = (store: Store, platformStore: PlatformStore) => ({
  byId: (organizationId: string, id: string): Promise<GrantRecord | undefined> =>
    store.findOne(organizationId, GRANTS, { _id: id }),
  /** Newest first. An empty `afterId` starts at the newest. */
  list: (organizationId: string, afterId: string, limit: number): Promise<GrantRecord[]> =>
    store.find(organizationId, GRANTS, afterId === '' ? {} : { _id: { lt: afterId } }, {
      sort: [['_id', 'desc']],
      limit,
    }),
  create: (grant: GrantRecord, ops: readonly Op[]): Promise<void> =>
    store.apply(grant.organizationId, [insert(GRANTS, grant), ...ops]),
  /** @throws ExpectationFailedError when it is revoked already */
  revoke: ({ _id, organizationId }: GrantRecord, revokedAt: string, auditEntry: Op): Promise<void> =>
    store.apply(organizationId, [update(GRANTS, { _id, revokedAt: null }, { set: { revokedAt } }), auditEntry]),
  /** Removes at most `limit` that ended before; resolves to their number. */
  async removeBefore(time: string, limit: number): Promise<number> {
    const ended = await platformStore.find(
      GRANTS,
      { expiresAt: { lt: time } },
      { sort: [['expiresAt', 'asc']], limit },
    );
    if (ended.length > 0)
      await platformStore.apply(ended.map(({ _id }) => remove(GRANTS, { _id }, { optional: true })));
    return ended.length;
  },
});
export type Grants = ReturnType<typeof openGrants>;
