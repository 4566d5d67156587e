import { collection, insert, update, type Document, type Op, type PlatformStore } from 'platform/store/store.ts';
import { foldName } from './rules.ts';

export interface OrganizationRecord extends Document {
  name: string;
  /** The folded name, which is unique. */
  nameKey: string;
  tier: string;
  state: 'active' | 'deactivated';
  /**
   * Rises with every new server token. Of two that are created at once, only one still finds the epoch that it read, so
   * they cannot both be the last that the tier allows.
   */
  tokenEpoch: number;
  createdAt: string;
  updatedAt: string;
}

export const ORGANIZATIONS = collection<OrganizationRecord>('organizations', {
  scope: 'platform',
  platformIndexes: [{ fields: ['nameKey'], unique: true }],
});

/**
 * Belongs in the batch that inserts a server token. The batch fails unless the organization is active, has the same
 * tier and got no other server token since it was read.
 */
export const raiseTokenEpoch = ({ _id, tier, tokenEpoch }: OrganizationRecord): Op =>
  update(ORGANIZATIONS, { _id, state: 'active', tier, tokenEpoch }, { increment: { tokenEpoch: 1 } });

export const openOrganizations = (platformStore: PlatformStore) => ({
  byId: (id: string): Promise<OrganizationRecord | undefined> => platformStore.findOne(ORGANIZATIONS, { _id: id }),
  byName: (name: string): Promise<OrganizationRecord | undefined> =>
    platformStore.findOne(ORGANIZATIONS, { nameKey: foldName(name) }),

  /** Organizations by id. One read for all ids, and no read for none. */
  async byIds(ids: readonly string[]): Promise<ReadonlyMap<string, OrganizationRecord>> {
    const found = ids.length === 0 ? [] : await platformStore.find(ORGANIZATIONS, { _id: { in: ids } });
    return new Map(found.map((organization) => [organization._id, organization]));
  },

  /** By folded name; an empty `afterName` starts at the first. */
  list: (afterName: string, limit: number): Promise<OrganizationRecord[]> =>
    platformStore.find(ORGANIZATIONS, { nameKey: { gt: foldName(afterName) } }, { sort: [['nameKey', 'asc']], limit }),

  create: (organization: OrganizationRecord, auditEntry: Op): Promise<void> =>
    platformStore.apply([insert(ORGANIZATIONS, organization), auditEntry]),

  /** @throws ExpectationFailedError when state or tier changed since they were read */
  change: ({ _id, state, tier }: OrganizationRecord, set: Partial<OrganizationRecord>, auditEntry: Op): Promise<void> =>
    platformStore.apply([update(ORGANIZATIONS, { _id, state, tier }, { set }), auditEntry]),
});
export type Organizations = ReturnType<typeof openOrganizations>;
