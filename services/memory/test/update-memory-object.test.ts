import { newId } from 'platform/core/ids.ts';
import { errorOf, reasonAndPathOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
let typeId: string;
beforeAll(async () => {
  memory = await startMemory();
  token = memory.organization();
  typeId = (await token.type({ type: 'Product' })).id;
});
afterAll(() => memory.stop());

describe('200', () => {
  it('replaces the whole content and raises the revision', async () => {
    const before = await token.object({ typeId, content: '{"price":1,"name":"a"}' });
    const after = await token.patchObject(before.id, { content: '{ "price": 2 }' });
    expect(after).toEqual({ ...before, content: '{ "price": 2 }', revision: 2, updatedAt: after.updatedAt });
    expect(after.updatedAt >= before.updatedAt).toBe(true);
    expect(await token.getObject(before.id)).toEqual(after);
    expect((await token.listObjects({ typeId, key: before.key })).items).toEqual([after]);
  });
  it('accepts the members of its own answer, id and type name in any case', async () => {
    const { id, type, key, content } = await token.object({ typeId });
    expect(
      await token.patchObject(id, { id: id.toUpperCase(), typeId, type: type.toLowerCase(), key, content }),
    ).toMatchObject({ id, key, content, revision: 2 });
  });
  it('writes nothing when the body contains only unchanged members that cannot change', async () => {
    const before = await token.object({ typeId });
    expect(await token.patchObject(before.id, { key: before.key })).toEqual(before);
  });
  it('applies all of 64 concurrent updates', async () => {
    const { id } = await token.object({ typeId });
    const written = await Promise.all(
      Array.from({ length: 64 }, (_, n) => token.patchObject(id, { content: `{"price":${n}}` })),
    );
    expect(new Set(written.map(({ revision }) => revision)).size).toBe(64);
    const last = written.find(({ revision }) => revision === 65);
    expect(await token.getObject(id)).toEqual(last);
  });
});

describe('400', () => {
  it('rejects a body without members', async () => {
    const { id } = await token.object({ typeId });
    expect((await errorOf(token.patchObject(id, {}))).reason).toBe('INVALID_REQUEST');
  });
  it.each([
    ['id', { id: newId() }],
    ['typeId', { typeId: newId() }],
    ['typeId', { typeId: 'x' }],
    ['type', { type: 'Other' }],
    ['key', { key: 'other' }],
    ['content', { content: 'null' }],
    ['content', { content: '[]' }],
    ['content', { content: undefined }],
  ])('names %s: %j', async (member, body) => {
    const before = await token.object({ typeId });
    expect(await reasonAndPathOf(token.patchObject(before.id, { content: '{"price":2}', ...body }))).toEqual([
      'INVALID_REQUEST',
      `/${member}`,
    ]);
    expect(await token.getObject(before.id)).toEqual(before);
  });
  it('names the path that violates the schema', async () => {
    const before = await token.object({ typeId });
    expect(await reasonAndPathOf(token.patchObject(before.id, { content: '{"price":"x"}' }))).toEqual([
      'INVALID_CONTENT',
      '/content/price',
    ]);
    expect(await token.getObject(before.id)).toEqual(before);
  });
  it('names If-Match when it is no list of ETags', async () => {
    const { id } = await token.object({ typeId });
    expect(await reasonAndPathOf(token.patchObject(id, { content: '{"price":2}', ifMatch: '1' }))).toEqual([
      'INVALID_REQUEST',
      '/If-Match',
    ]);
  });
});

describe('404', () => {
  it("is the same for a malformed, an unknown, a hidden and another organization's id", async () => {
    const hidden = await token.object({ typeId: (await token.type({ visibility: 'private' })).id });
    const other = memory.organization();
    const foreign = await other.object({ typeId: (await other.type()).id });
    const user = memory.as(userOf(token.principal.organizationId));
    const body = { content: '{"price":2}' };
    const unknown = await errorOf(user.patchObject(newId(), body));
    expect(unknown.reason).toBe('NOT_FOUND');
    for (const id of ['x', hidden.id, foreign.id]) expect(await errorOf(user.patchObject(id, body))).toEqual(unknown);
    expect(await token.getObject(hidden.id)).toEqual(hidden);
    expect(await other.getObject(foreign.id)).toEqual(foreign);
  });
});
