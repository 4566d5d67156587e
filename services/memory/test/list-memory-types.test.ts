import { reasonAndPathOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
let ids: string[];
beforeAll(async () => {
  memory = await startMemory();
  token = memory.organization();
  ids = [];
  for (let n = 0; n < 23; n++)
    ids.unshift((await token.type({ type: `t${n}`, visibility: n === 22 ? 'private' : 'organization' })).id);
  await memory.organization().type();
});
afterAll(() => memory.stop());
const idsOf = (items: { id: string }[]) => items.map(({ id }) => id);

describe('200', () => {
  it('answers all types of the organization, newest first, when there are no parameters', async () => {
    expect(idsOf(await token.listTypes())).toEqual(ids);
  });
  it('answers one page when page or pageSize is given; the defaults are page 1 and 20 items', async () => {
    expect(idsOf(await token.listTypes({ page: 1 }))).toEqual(ids.slice(0, 20));
    expect(idsOf(await token.listTypes({ page: 2 }))).toEqual(ids.slice(20));
    expect(idsOf(await token.listTypes({ pageSize: 5 }))).toEqual(ids.slice(0, 5));
    expect(idsOf(await token.listTypes({ page: 3, pageSize: 7 }))).toEqual(ids.slice(14, 21));
    expect(await token.listTypes({ page: 9 })).toEqual([]);
  });
  it('leaves out the types that the principal may not see', async () => {
    const user = memory.as(userOf(token.principal.organizationId));
    expect(idsOf(await user.listTypes())).toEqual(ids.slice(1));
    expect(idsOf(await user.listTypes({ pageSize: 2 }))).toEqual(ids.slice(1, 3));
  });
});

describe('400', () => {
  it.each([
    ['page', { page: 0 }],
    ['page', { page: -1 }],
    ['page', { page: 1_002, pageSize: 100 }],
    ['pageSize', { pageSize: 0 }],
    ['pageSize', { pageSize: -1 }],
    ['pageSize', { pageSize: 101 }],
  ])('names %s: %j', async (parameter, given) => {
    expect(await reasonAndPathOf(token.listTypes(given))).toEqual(['INVALID_REQUEST', `/${parameter}`]);
  });
});
