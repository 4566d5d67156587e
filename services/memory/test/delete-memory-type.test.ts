import { newId } from 'platform/core/ids.ts';
import { errorOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
  token = memory.organization();
});
afterAll(() => memory.stop());

describe('200', () => {
  it('answers the id; the type is gone, and its name is free', async () => {
    const { id } = await token.type({ type: 'Gone' });
    expect(await token.deleteType(id)).toEqual({ success: true, id });
    expect((await errorOf(token.getType(id))).reason).toBe('NOT_FOUND');
    expect((await errorOf(token.createObject({ typeId: id }))).reason).toBe('NOT_FOUND');
    await expect(token.type({ type: 'Gone' })).resolves.toBeDefined();
  });
  it('deletes a type after its objects were deleted', async () => {
    const { id } = await token.type();
    const object = await token.object({ typeId: id });
    await token.patchObject(object.id, { content: '{"price":2}' });
    await token.deleteObject(object.id);
    expect(await token.deleteType(id)).toEqual({ success: true, id });
  });
});

describe('If-Match', () => {
  it('deletes the type only in the version that it names', async () => {
    const { id } = await token.type();
    await token.putType(id, { description: 'changed' });
    expect((await errorOf(token.deleteType(id, '"1"'))).reason).toBe('PRECONDITION_FAILED');
    expect(await token.deleteType(id, '"2"')).toEqual({ success: true, id });
  });
});

describe('404', () => {
  it("is the same for a malformed, an unknown, a deleted, a hidden and another organization's id", async () => {
    const { id } = await token.type();
    await token.deleteType(id);
    const hidden = await token.type({ visibility: 'private' });
    const foreign = await memory.organization().type();
    const user = memory.as(userOf(token.principal.organizationId));
    const unknown = await errorOf(user.deleteType(newId()));
    expect(unknown.reason).toBe('NOT_FOUND');
    for (const other of ['x', id, hidden.id, foreign.id])
      expect(await errorOf(user.deleteType(other))).toEqual(unknown);
    expect(await token.getType(hidden.id)).toEqual(hidden);
  });
});

describe('409', () => {
  it('gives the number of objects that the type still has', async () => {
    const { id } = await token.type();
    const objects = await Promise.all([1, 2, 3].map(() => token.object({ typeId: id })));
    expect(await errorOf(token.deleteType(id))).toMatchObject({ reason: 'TYPE_IN_USE', facts: { count: 3 } });
    await token.deleteObject(objects[0]!.id);
    expect(await errorOf(token.deleteType(id))).toMatchObject({ facts: { count: 2 } });
  });
});
