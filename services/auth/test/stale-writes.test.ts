import { join } from 'node:path';
import { auditEntryOp, OUTBOX } from 'platform/events/outbox.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { ExpectationFailedError, type OpenStore } from 'platform/store/store.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { GRANTS, openGrants, type GrantRecord } from '../src/grants/store.ts';
import {
  openOrganizations,
  ORGANIZATIONS,
  raiseTokenEpoch,
  type OrganizationRecord,
} from '../src/organizations/store.ts';
import { openServerTokens, SERVER_TOKENS, slotOfName, type ServerTokenRecord } from '../src/server-tokens/store.ts';
import { expectUnchanged, MEMBERSHIPS, openUsers, USERS, type MembershipRecord } from '../src/users/store.ts';

// What another replica has written since a record was read. The write must fail: its caller reads and checks again.
const [time, later] = ['2030-01-01T00:00:00.000Z', '2030-01-02T00:00:00.000Z'];
const organization: OrganizationRecord = {
  ...{ _id: 'o', name: 'One', nameKey: 'one', tier: 'starter', state: 'active', tokenEpoch: 0 },
  ...{ createdAt: time, updatedAt: time },
};
const membership: MembershipRecord = {
  ...{ _id: 'm', organizationId: 'o', userId: 'u', email: 'ada@example.com', name: 'Ada' },
  ...{ roles: [], groups: [], revision: 1, createdAt: time },
};
const token: ServerTokenRecord = {
  ...{ _id: 't', organizationId: 'o', name: 'ci', nameSlot: slotOfName('ci'), hash: 'h', hint: 'h' },
  ...{ createdAt: time, createdBy: 'ada@example.com', lastUsedAt: null, expiresAt: null, revokedAt: null },
};
const rotated = (id: string): ServerTokenRecord => ({ ...token, _id: id, hash: id });
const grant: GrantRecord = {
  ...{ _id: 'g', organizationId: 'o', userId: 'u', email: 'ada@example.com', clientId: 'c', createdBy: 'op' },
  ...{ createdAt: time, expiresAt: later, revokedAt: null },
};
const audit = () =>
  auditEntryOp({
    ...{ source: '/auth', organizationId: 'o', action: 'test', outcome: 'success', requestId: '', time },
    actor: { kind: 'operator', id: 'x', name: 'x', via: '' },
  });

const storesOf = ({ store, platformStore }: OpenStore) => ({
  store,
  organizations: openOrganizations(platformStore),
  users: openUsers(store, platformStore),
  tokens: openServerTokens(store),
  grants: openGrants(store, platformStore),
});
type Write = (stores: ReturnType<typeof storesOf>) => Promise<void>;

const setRoles: Write = ({ users }) => users.change(membership, { roles: ['admin'] }, audit());
const removeUser: Write = ({ users }) => users.remove(membership, audit());
const relyOnUser: Write = ({ store }) => store.apply('o', [expectUnchanged(membership)]);
const setTier: Write = ({ organizations }) => organizations.change(organization, { tier: 'professional' }, audit());
const deactivate: Write = ({ organizations }) => organizations.change(organization, { state: 'deactivated' }, audit());
const addToken: Write = ({ tokens }) =>
  tokens.create({ ...rotated('n'), nameSlot: 'n' }, undefined, [raiseTokenEpoch(organization)]);
const revoke: Write = ({ tokens }) => tokens.revoke(token, { revokedAt: later }, audit());
const rotate: Write = ({ tokens }) => tokens.replace(token, { expiresAt: later, revokedAt: null }, rotated('r'), []);
const rotateAgain: Write = ({ tokens }) =>
  tokens.replace(token, { expiresAt: null, revokedAt: later }, rotated('s'), []);
const revokeGrant: Write = ({ grants }) => grants.revoke(grant, later, audit());

const folder = temporaryFolder();
afterAll(() => folder.remove());
let stores = 0;

it.each<[string, string, Write, Write]>([
  ['roles are not set', 'the roles were set', setRoles, setRoles],
  ['roles are not set', 'the user was removed', removeUser, setRoles],
  ['a user is not removed', 'the roles were set', setRoles, removeUser],
  ['a user is not relied on', 'the roles were set', setRoles, relyOnUser],
  ['an organization is not deactivated', 'the tier was set', setTier, deactivate],
  ['a tier is not set', 'the organization was deactivated', deactivate, setTier],
  ['a token is not added', 'the tier was set', setTier, addToken],
  ['a token is not added', 'the organization was deactivated', deactivate, addToken],
  ['a token is not revoked', 'it was revoked', revoke, revoke],
  ['a token is not rotated', 'it was revoked', revoke, rotate],
  ['a token is not rotated', 'it was rotated', rotate, rotateAgain],
  ['a grant is not revoked', 'it was revoked', revokeGrant, revokeGrant],
])('%s when %s since it was read', async (_write, _change, change, write) => {
  const collections = [ORGANIZATIONS, USERS, MEMBERSHIPS, SERVER_TOKENS, GRANTS, OUTBOX];
  const opened = await openTestStore(join(folder.path, `${++stores}.db`), collections);
  const all = storesOf(opened);
  await all.organizations.create(organization, audit());
  await all.users.create(membership, undefined, audit());
  await all.tokens.create(token, undefined, []);
  await all.grants.create(grant, []);
  await change(all);
  const events = () => opened.platformStore.count(OUTBOX, {});
  const before = await events();
  await expect(write(all)).rejects.toThrow(ExpectationFailedError);
  expect(await events()).toBe(before);
  await opened.close();
});
