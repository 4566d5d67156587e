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

/** A person: one record, however many organizations the person is in. */
export interface UserRecord extends Document {
  email: string;
  name: string;
  createdAt: string;
}

/** A user in one organization. It repeats email and name, so that a list of users takes one read. */
export interface MembershipRecord extends OrganizationDocument {
  userId: string;
  email: string;
  name: string;
  roles: Role[];
  groups: string[];
  /** Rises with every change. */
  revision: number;
  createdAt: string;
}

export const USERS = collection<UserRecord>('users', {
  scope: 'platform',
  platformIndexes: [{ fields: ['email'], unique: true }],
});
export const MEMBERSHIPS = collection<MembershipRecord>('memberships', {
  scope: 'organization',
  indexes: [
    { fields: ['email'], unique: true },
    { fields: ['userId'], unique: true },
  ],
  platformIndexes: [{ fields: ['userId'] }],
});

/** Fails the batch that it is in when the membership was changed or removed since it was read. */
export const expectUnchanged = ({ _id, revision }: MembershipRecord): Op =>
  update(MEMBERSHIPS, { _id, revision }, { set: { revision } });

export const openUsers = (store: Store, platformStore: PlatformStore) => ({
  /** The user with this email, whether or not an organization has it as a member. */
  byEmail: (email: string): Promise<UserRecord | undefined> => platformStore.findOne(USERS, { email }),
  membershipByEmail: (organizationId: string, email: string): Promise<MembershipRecord | undefined> =>
    store.findOne(organizationId, MEMBERSHIPS, { email }),
  membershipByUserId: (organizationId: string, userId: string): Promise<MembershipRecord | undefined> =>
    store.findOne(organizationId, MEMBERSHIPS, { userId }),
  /** By email; an empty `afterEmail` starts at the first. */
  list: (organizationId: string, afterEmail: string, limit: number): Promise<MembershipRecord[]> =>
    store.find(organizationId, MEMBERSHIPS, { email: { gt: afterEmail } }, { sort: [['email', 'asc']], limit }),

  /** Adds the membership, and the user if it is new. @throws DuplicateKeyError when one of them exists already */
  create: (membership: MembershipRecord, newUser: UserRecord | undefined, auditEntry: Op): Promise<void> =>
    store.apply(membership.organizationId, [
      ...(newUser ? [insert(USERS, newUser)] : []),
      insert(MEMBERSHIPS, membership),
      auditEntry,
    ]),

  /** @throws ExpectationFailedError when the membership was changed or removed since it was read */
  change: (
    { _id, organizationId, revision }: MembershipRecord,
    set: Partial<Pick<MembershipRecord, 'roles' | 'groups'>>,
    auditEntry: Op,
  ): Promise<void> =>
    store.apply(organizationId, [
      update(MEMBERSHIPS, { _id, revision }, { set, increment: { revision: 1 } }),
      auditEntry,
    ]),

  /** @throws ExpectationFailedError when the membership was changed or removed since it was read */
  remove: ({ _id, organizationId, revision }: MembershipRecord, auditEntry: Op): Promise<void> =>
    store.apply(organizationId, [remove(MEMBERSHIPS, { _id, revision }), auditEntry]),

  /** For what is recorded without a change. */
  addAuditEntry: (organizationId: string, auditEntry: Op): Promise<void> => store.apply(organizationId, [auditEntry]),
});
export type Users = ReturnType<typeof openUsers>;
