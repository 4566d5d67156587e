import {
  collection,
  insert,
  remove,
  update,
  type Document,
  type Op,
  type OrganizationDocument,
  type PlatformStore,
  type Store,
} from 'platform/store/store.ts';
import type { Role } from './rules.ts';

/** A person, once across organizations. */
export interface User extends Document {
  email: string;
  name: string;
  createdAt: string;
}

/** A user in one organization. Email and name stand here, too, so that a list is one read. */
export interface Membership extends OrganizationDocument {
  userId: string;
  email: string;
  name: string;
  roles: Role[];
  groups: string[];
  /** Raised by every change. */
  revision: number;
  createdAt: string;
}

export const USERS = collection<User>('users', {
  scope: 'platform',
  platformIndexes: [{ fields: ['email'], unique: true }],
});
export const MEMBERSHIPS = collection<Membership>('memberships', {
  scope: 'organization',
  indexes: [
    { fields: ['email'], unique: true },
    { fields: ['userId'], unique: true },
  ],
});

/** Expects, in a batch, that the membership is as it was read. */
export const expectUnchanged = ({ _id, revision }: Membership): Op =>
  update(MEMBERSHIPS, { _id, revision }, { set: { revision } });

export const openUsers = (store: Store, platformStore: PlatformStore) => ({
  /** Whatever organization the user is in. */
  byEmail: (email: string): Promise<User | undefined> => platformStore.findOne(USERS, { email }),
  member: (organizationId: string, email: string): Promise<Membership | undefined> =>
    store.findOne(organizationId, MEMBERSHIPS, { email }),
  memberById: (organizationId: string, userId: string): Promise<Membership | undefined> =>
    store.findOne(organizationId, MEMBERSHIPS, { userId }),
  list: (organizationId: string, afterEmail: string, limit: number): Promise<Membership[]> =>
    store.find(organizationId, MEMBERSHIPS, { email: { gt: afterEmail } }, { sort: [['email', 'asc']], limit }),

  /** Adds the membership, and the user if it is new. */
  add: (membership: Membership, newUser: User | undefined, audit: Op): Promise<void> =>
    store.apply(membership.organizationId, [
      ...(newUser ? [insert(USERS, newUser)] : []),
      insert(MEMBERSHIPS, membership),
      audit,
    ]),

  change: (
    { _id, organizationId, revision }: Membership,
    set: Partial<Pick<Membership, 'roles' | 'groups'>>,
    audit: Op,
  ): Promise<void> =>
    store.apply(organizationId, [update(MEMBERSHIPS, { _id, revision }, { set, increment: { revision: 1 } }), audit]),

  remove: ({ _id, organizationId, revision }: Membership, audit: Op): Promise<void> =>
    store.apply(organizationId, [remove(MEMBERSHIPS, { _id, revision }), audit]),

  record: (organizationId: string, audit: Op): Promise<void> => store.apply(organizationId, [audit]),
});
export type Users = ReturnType<typeof openUsers>;
