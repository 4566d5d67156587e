import { newId } from 'platform/core/ids.ts';
import type { Principal } from 'platform/core/principal.ts';
import { serverToken } from 'platform/service/testing.ts';
import { errorOf, reasonAndPathOf, SCHEMA, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

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

it('who hides a type from himself is answered with what it has become, also when its objects were read', async () => {
  const owner = user();
  for (const jsonSchema of [undefined, JSON.stringify({ ...SCHEMA, description: 'changed' })]) {
    const { id } = await owner.type();
    await owner.object({ typeId: id });
    const body = { visibility: 'private', ...(jsonSchema !== undefined && { jsonSchema }) };
    expect(await owner.putType(id, body)).toMatchObject(body);
    expect((await errorOf(owner.getType(id))).reason).toBe('NOT_FOUND');
  }
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
