import { collection, insert, update, type Document, type Op, type PlatformStore } from 'platform/store/store.ts';
import { foldName } from './rules.ts';

export interface Organization extends Document {
  name: string;
  /** The name as it is matched. */
  nameKey: string;
  tier: string;
  state: 'active' | 'deactivated';
  /** Raised by every new server token, so that two at once cannot both take the last place under the tier's cap. */
  tokenEpoch: number;
  createdAt: string;
  updatedAt: string;
}

export const ORGANIZATIONS = collection<Organization>('organizations', {
  scope: 'platform',
  platformIndexes: [{ fields: ['nameKey'], unique: true }],
});

/** Expects, in a batch, that the organization is active, has this tier and got no other server token since it was read. */
export const takeTokenPlace = ({ _id, tier, tokenEpoch }: Organization): Op =>
  update(ORGANIZATIONS, { _id, state: 'active', tier, tokenEpoch }, { increment: { tokenEpoch: 1 } });

export const openOrganizations = (platformStore: PlatformStore) => ({
  byId: (id: string): Promise<Organization | undefined> => platformStore.findOne(ORGANIZATIONS, { _id: id }),
  byName: (name: string): Promise<Organization | undefined> =>
    platformStore.findOne(ORGANIZATIONS, { nameKey: foldName(name) }),

  /** By id, in one read; none for an empty list. */
  async byIds(ids: readonly string[]): Promise<ReadonlyMap<string, Organization>> {
    const found = ids.length === 0 ? [] : await platformStore.find(ORGANIZATIONS, { _id: { in: ids } });
    return new Map(found.map((organization) => [organization._id, organization]));
  },

  list: (afterName: string, limit: number): Promise<Organization[]> =>
    platformStore.find(ORGANIZATIONS, { nameKey: { gt: foldName(afterName) } }, { sort: [['nameKey', 'asc']], limit }),

  insert: (organization: Organization, audit: Op): Promise<void> =>
    platformStore.apply([insert(ORGANIZATIONS, organization), audit]),

  /** Expects state and tier as they were read. */
  change: ({ _id, state, tier }: Organization, set: Partial<Organization>, audit: Op): Promise<void> =>
    platformStore.apply([update(ORGANIZATIONS, { _id, state, tier }, { set }), audit]),
});
export type Organizations = ReturnType<typeof openOrganizations>;
