import { newId } from 'platform/core/ids.ts';
import type { Principal } from 'platform/core/principal.ts';
import { serverToken } from 'platform/service/testing.ts';
import { errorOf, reasonAndPathOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let organizationId: string;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(() => {
  organizationId = newId();
  token = memory.as(serverToken(organizationId));
});
const user = (given: Partial<Principal> = {}): Caller => memory.as(userOf(organizationId, given));

/** Everything that a caller may do with a type and an object of it, and how it ends. */
async function outcomes(caller: Caller, typeId: string, type: string, objectId: string): Promise<string[]> {
  const ended = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'seen',
      ({ reason, facts }: { reason: string; facts?: Record<string, unknown> }) =>
        reason === 'NOT_FOUND' ? 'hidden' : `${reason} ${Object.keys(facts ?? {}).join()}`,
    );
  const { items, total } = await caller.listObjects();
  const byName = await caller.listObjects({ type });
  return [
    await ended(caller.getType(typeId)),
    (await caller.listTypes()).length === 1 ? 'seen' : 'hidden',
    await ended(caller.putType(typeId, { description: 'x' })),
    await ended(caller.changeType(typeId, { description: 'y', dryRun: true })),
    items.length === 1 && total === 1 ? 'seen' : items.length + total === 0 ? 'hidden' : 'torn',
    byName.items.length === 1 && byName.total === 1 ? 'seen' : 'hidden',
    (await caller.listObjects({ typeId })).total === 1 ? 'seen' : 'hidden',
    (await caller.listObjects({ key: 'k' })).total === 1 ? 'seen' : 'hidden',
    await ended(caller.getObject(objectId)),
    await ended(caller.patchObject(objectId, { content: '{"price":2}' })),
    await ended(caller.createObject({ typeId, key: 'k', upsert: true })),
    await ended(caller.createObject({ type, key: 'k', upsert: true })),
  ];
}

it.each<[visibility: string, groups: string[], sees: Record<string, boolean>]>([
  ['organization', [], { nobody: true, sales: true, other: true, admin: true, securityAdmin: true }],
  ['organization', ['sales'], { nobody: true, sales: true, other: true, admin: true, securityAdmin: true }],
  ['group', ['sales', 'support'], { nobody: false, sales: true, other: false, admin: true, securityAdmin: false }],
  ['group', [], { nobody: false, sales: false, other: false, admin: true, securityAdmin: false }],
  ['private', ['sales'], { nobody: false, sales: false, other: false, admin: true, securityAdmin: false }],
])(
  'a type with visibility %s and groups %j is seen by those who may, at every endpoint',
  async (visibility, groupNames, sees) => {
    const { id: typeId, type } = await token.type({ visibility, groupNames });
    const { id: objectId } = await token.object({ typeId, key: 'k' });
    const callers: Record<string, Caller> = {
      nobody: user(),
      sales: user({ groups: ['sales'] }),
      other: user({ groups: ['Sales', 'sale', 'group:sales', 'organization'] }),
      admin: user({ roles: ['admin'] }),
      securityAdmin: user({ roles: ['security_admin'] }),
    };
    for (const [name, caller] of Object.entries(callers)) {
      const all = await outcomes(caller, typeId, type, objectId);
      expect([name, new Set(all)]).toEqual([name, new Set([sees[name] ? 'seen' : 'hidden'])]);
    }
    expect(new Set(await outcomes(token, typeId, type, objectId))).toEqual(new Set(['seen']));
  },
);

it('the name of a hidden type is taken, and nothing more is said of it', async () => {
  const { type, id } = await token.type({ visibility: 'group', groupNames: ['sales'] });
  expect(await errorOf(user().createType({ type }))).toMatchObject({ reason: 'ALREADY_EXISTS', facts: {} });
  expect((await errorOf(user({ groups: ['sales'] }).createType({ type }))).facts).toEqual({ id });
});

it('a change of visibility or groups applies from the next request', async () => {
  const { id, version } = await token.type({ visibility: 'private' });
  await token.object({ typeId: id });
  const [sales, support] = [user({ groups: ['sales'] }), user({ groups: ['support'] })];
  const seen = async () => [(await sales.listObjects()).total, (await support.listObjects()).total];
  expect(await seen()).toEqual([0, 0]);
  await token.putType(id, { visibility: 'group', groupNames: ['sales'] });
  expect(await seen()).toEqual([1, 0]);
  await token.putType(id, { groupNames: ['support'] });
  expect(await seen()).toEqual([0, 1]);
  await token.putType(id, { groupNames: [], updateMask: ['groupNames'] });
  expect(await seen()).toEqual([0, 0]);
  expect(await token.putType(id, { visibility: 'organization' })).toMatchObject({ version, groupNames: [] });
  expect(await seen()).toEqual([1, 1]);
});

it.each([
  ['/groupNames/1', { groupNames: ['a', 'a'] }],
  ['/groupNames/0', { groupNames: [' '] }],
  ['/groupNames/0', { groupNames: ['x'.repeat(101)] }],
  ['/groupNames/0', { groupNames: ['a\nb'] }],
  ['/groupNames', { groupNames: Array.from({ length: 101 }, (_, n) => `g${n}`) }],
  ['/visibility', { visibility: 'groups' }],
])('refuses %s: %j', async (path, given) => {
  expect(await reasonAndPathOf(token.createType(given))).toEqual(['INVALID_REQUEST', path]);
  const { id } = await token.type();
  expect(await reasonAndPathOf(token.putType(id, given))).toEqual(['INVALID_REQUEST', path]);
});

it('a page and its total hold only what is seen, in a list over many types', async () => {
  const sales = user({ groups: ['sales'] });
  for (let n = 0; n < 6; n++) {
    const visibility = ['organization', 'group', 'private'][n % 3]!;
    const { id } = await token.type({ visibility, groupNames: [n < 3 ? 'sales' : 'support'] });
    for (let m = 0; m < 3; m++) await token.object({ typeId: id });
  }
  const { total, items } = await sales.listObjects({ pageSize: 4 });
  expect([total, items.length]).toEqual([9, 4]);
  expect((await sales.listObjects({ pageSize: 4, page: 3 })).items).toHaveLength(1);
  expect((await user().listObjects()).total).toBe(6);
  expect((await token.listObjects()).total).toBe(18);
  expect(await sales.listTypes()).toHaveLength(3);
});
