import { join } from 'node:path';
import { systemClock } from 'platform/core/clock.ts';
import { keyedMutex } from 'platform/core/keyed-mutex.ts';
import { auditEntryOp, OUTBOX } from 'platform/events/outbox.ts';
import type { ServiceError } from 'platform/core/errors.ts';
import { makeLog } from 'platform/core/log.ts';
import { makeDenials } from 'platform/events/denials.ts';
import { principalWith, temporaryFolder } from 'platform/service/testing.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { openOrganizations, ORGANIZATIONS, type OrganizationRecord } from '../src/organizations/store.ts';
import { createServerToken } from '../src/server-tokens/create-server-token.ts';
import { rotateServerToken } from '../src/server-tokens/rotate-server-token.ts';
import { openServerTokens, SERVER_TOKENS } from '../src/server-tokens/store.ts';
import { MEMBERSHIPS, openUsers, USERS, type MembershipRecord } from '../src/users/store.ts';
import { expectError } from './fixture.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const time = '2030-01-01T00:00:00.000Z';
const organization: OrganizationRecord = {
  _id: 'o1',
  name: 'One',
  nameKey: 'one',
  tier: 'starter',
  state: 'active',
  tokenEpoch: 0,
  createdAt: time,
  updatedAt: time,
};
const membership: MembershipRecord = {
  _id: 'm1',
  organizationId: 'o1',
  userId: 'u1',
  email: 'ada@example.com',
  name: 'Ada',
  roles: ['security_admin'],
  groups: [],
  revision: 1,
  createdAt: time,
};
const audit = () =>
  auditEntryOp({
    source: '/auth',
    organizationId: 'o1',
    action: 'test',
    outcome: 'success',
    actor: { kind: 'operator', id: 'x', name: 'x', via: '' },
    requestId: '',
    time,
  });

const context = () => ({
  principal: principalWith({
    kind: 'USER',
    organizationId: 'o1',
    subject: 'u1',
    name: 'ada@example.com',
    roles: ['security_admin'],
  }),
  caller: 'operator:test',
  requestId: 'r1',
  signal: new AbortController().signal,
  deadline: Number.MAX_SAFE_INTEGER,
  log: makeLog('auth', 'silent'),
});

type Stores = { organizations: ReturnType<typeof openOrganizations>; users: ReturnType<typeof openUsers> };

const CHANGES: readonly (readonly [string, (stores: Stores) => Promise<void>])[] = [
  ['the caller loses the role', ({ users }) => users.change(membership, { roles: [] }, audit())],
  ['the caller is removed', ({ users }) => users.remove(membership, audit())],
  [
    'the organization is deactivated',
    ({ organizations }) => organizations.change(organization, { state: 'deactivated' }, audit()),
  ],
];
const WRITES = {
  created: (deps: Parameters<typeof createServerToken>[0]) => createServerToken(deps, { name: 'late' }, context()),
  rotated: (deps: Parameters<typeof createServerToken>[0]) =>
    rotateServerToken(deps, { idOrName: 'before', overlapSeconds: 60 }, context()),
};

it.each(
  Object.entries(WRITES).flatMap(([written, write]) =>
    CHANGES.map(([name, change]) => ({ name: `no server token is ${written} when ${name}`, write, change })),
  ),
)('$name between the check and the write', async ({ name, write, change }) => {
  const { store, platformStore, close } = await openTestStore(join(folder.path, `${name}.db`), [
    ORGANIZATIONS,
    USERS,
    MEMBERSHIPS,
    SERVER_TOKENS,
    OUTBOX,
  ]);
  const stores = { organizations: openOrganizations(platformStore), users: openUsers(store, platformStore) };
  const serverTokens = openServerTokens(store);
  await stores.organizations.create(organization, audit());
  await stores.users.create(membership, undefined, audit());
  const others = { clock: systemClock, denials: makeDenials(), mutex: keyedMutex() };
  await createServerToken({ ...stores, ...others, serverTokens }, { name: 'before' }, context());
  const before = await serverTokens.list('o1', '', 10);

  let changed: Promise<void> | undefined;
  const serverTokensWithChange: typeof serverTokens = {
    ...serverTokens,
    countLive: async (...args) => {
      await (changed ??= change(stores));
      return serverTokens.countLive(...args);
    },
  };
  await expectError(write({ ...stores, ...others, serverTokens: serverTokensWithChange }), 'FORBIDDEN');
  expect(changed).toBeDefined();
  expect(await serverTokens.list('o1', '', 10)).toEqual(before);
  await close();
});

it('64 creators at once on two replicas create exactly as many server tokens as the tier allows', async () => {
  const { store, platformStore, close } = await openTestStore(join(folder.path, 'cap.db'), [
    ORGANIZATIONS,
    USERS,
    MEMBERSHIPS,
    SERVER_TOKENS,
    OUTBOX,
  ]);
  const organizations = openOrganizations(platformStore);
  const users = openUsers(store, platformStore);
  const serverTokens = openServerTokens(store);
  await organizations.create(organization, audit());
  await users.create(membership, undefined, audit());
  const replicas = [keyedMutex(), keyedMutex()].map((mutex) => ({
    ...{ organizations, users, serverTokens, mutex },
    clock: systemClock,
    denials: makeDenials(),
  }));
  const outcomes = await Promise.all(
    Array.from({ length: 64 }, (_, n) =>
      createServerToken(replicas[n % 2]!, { name: `token ${n}` }, context()).then(
        () => 'created',
        ({ reason, facts }: ServiceError) => `${reason} ${String(facts.limit)}`,
      ),
    ),
  );
  expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(5);
  expect(new Set(outcomes)).toEqual(new Set(['created', 'TIER_LIMIT server_tokens']));
  expect(await serverTokens.list('o1', '', 10)).toHaveLength(5);
  await close();
});
