import { newId } from 'platform/core/ids.ts';
import { reasonAndPathOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
let user: Caller;
let first: string;
let second: string;
let hidden: string;
/** Ids, newest first: 15 of type First, 10 of Second, 5 of the private Hidden; keys in each: k0, k1 .... */
let ids: { first: string[]; second: string[]; hidden: string[] };
beforeAll(async () => {
  memory = await startMemory();
  token = memory.organization();
  user = memory.as(userOf(token.principal.organizationId));
  first = (await token.type({ type: 'First' })).id;
  second = (await token.type({ type: 'Second' })).id;
  hidden = (await token.type({ type: 'Hidden', visibility: 'private' })).id;
  const fill = async (typeId: string, count: number) => {
    const made: string[] = [];
    for (let n = 0; n < count; n++) made.unshift((await token.object({ typeId, key: `k${n}` })).id);
    return made;
  };
  ids = { first: await fill(first, 15), second: await fill(second, 10), hidden: await fill(hidden, 5) };
  const other = memory.organization();
  await other.object({ typeId: (await other.type({ type: 'First' })).id, key: 'k0' });
});
afterAll(() => memory.stop());

type Listing = Awaited<ReturnType<Caller['listObjects']>>;
const seen = ({ total, items }: Listing) => ({ total, ids: items.map(({ id }) => id) });

describe('200', () => {
  it('answers page 1 with 20 whole objects by default, newest first, and the exact total', async () => {
    const listing = await token.listObjects();
    expect(seen(listing)).toEqual({ total: 30, ids: [...ids.hidden, ...ids.second, ...ids.first].slice(0, 20) });
    for (const item of listing.items) expect(item).toEqual(await token.getObject(item.id));
  });
  it('returns every object on exactly one page', async () => {
    const pages = await Promise.all([1, 2, 3, 4, 5].map((page) => token.listObjects({ page, pageSize: 7 })));
    expect(pages.map(({ items }) => items.length)).toEqual([7, 7, 7, 7, 2]);
    expect(pages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual([
      ...ids.hidden,
      ...ids.second,
      ...ids.first,
    ]);
  });
  it('answers no items and the exact total past the last page', async () => {
    expect(await token.listObjects({ page: 1_000, pageSize: 100 })).toEqual({ total: 30, items: [] });
  });
  it('filters by typeId, type and key; several filters must all match', async () => {
    expect(seen(await token.listObjects({ typeId: first.toUpperCase(), pageSize: 2 }))).toEqual({
      total: 15,
      ids: ids.first.slice(0, 2),
    });
    expect(seen(await token.listObjects({ type: 'sECOND' }))).toEqual({ total: 10, ids: ids.second });
    expect(seen(await token.listObjects({ key: 'k0' }))).toEqual({
      total: 3,
      ids: [ids.hidden[4], ids.second[9], ids.first[14]],
    });
    expect(seen(await token.listObjects({ key: 'k0', pageSize: 1, page: 2 }))).toEqual({
      total: 3,
      ids: [ids.second[9]],
    });
    expect(seen(await token.listObjects({ typeId: first, type: 'first', key: 'k3' }))).toEqual({
      total: 1,
      ids: [ids.first[11]],
    });
    expect(seen(await token.listObjects({ type: 'First', key: 'K3' }))).toEqual({ total: 0, ids: [] });
    expect(seen(await token.listObjects({ typeId: first, type: 'second' }))).toEqual({ total: 0, ids: [] });
  });
  it.each([{ typeId: newId() }, { type: 'unknown' }, { type: '' }, { type: "'; --" }, { key: 'unknown' }, { key: '' }])(
    'answers an empty list when nothing matches: %j',
    async (filter) => {
      expect(await token.listObjects(filter)).toEqual({ total: 0, items: [] });
    },
  );
  it('leaves out of items and totals the objects that the principal may not see', async () => {
    expect(seen(await user.listObjects({ pageSize: 100 }))).toEqual({ total: 25, ids: [...ids.second, ...ids.first] });
    expect(seen(await user.listObjects({ key: 'k0' }))).toEqual({ total: 2, ids: [ids.second[9], ids.first[14]] });
    for (const filter of [{ typeId: hidden }, { type: 'Hidden' }, { type: 'hidden', key: 'k0' }])
      expect(await user.listObjects(filter)).toEqual({ total: 0, items: [] });
  });
  it('answers a user as it answers an admin when no type is private', async () => {
    const open = memory.organization();
    const { id } = await open.type();
    for (let n = 0; n < 3; n++) await open.object({ typeId: id });
    expect(await memory.as(userOf(open.principal.organizationId)).listObjects()).toEqual(await open.listObjects());
  });
  it('answers an empty list in an organization without types', async () => {
    expect(await memory.organization().listObjects()).toEqual({ total: 0, items: [] });
  });
});

describe('400', () => {
  it.each([
    ['typeId', { typeId: 'x' }],
    ['typeId', { typeId: '' }],
    ['page', { page: 0 }],
    ['page', { page: -1 }],
    ['page', { page: 5_002 }],
    ['page', { page: 1_002, pageSize: 100 }],
    ['pageSize', { pageSize: 0 }],
    ['pageSize', { pageSize: -5 }],
    ['pageSize', { pageSize: 101 }],
  ])('names %s: %j', async (parameter, given) => {
    expect(await reasonAndPathOf(token.listObjects(given))).toEqual(['INVALID_REQUEST', `/${parameter}`]);
  });
});
