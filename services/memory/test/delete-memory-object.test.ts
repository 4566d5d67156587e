import { newId } from 'platform/core/ids.ts';
import { errorOf, reasonAndPathOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
let typeId: string;
beforeAll(async () => {
  memory = await startMemory();
  token = memory.organization();
  typeId = (await token.type()).id;
});
afterAll(() => memory.stop());

describe('200', () => {
  it('answers the id; the object is gone from reads and totals, and its key is free', async () => {
    const { total } = await token.listObjects({ typeId });
    const { id } = await token.object({ typeId, key: 'gone' });
    expect(await token.deleteObject(id)).toEqual({ success: true, id });
    expect((await errorOf(token.getObject(id))).reason).toBe('NOT_FOUND');
    expect((await token.listObjects({ typeId })).total).toBe(total);
    await expect(token.object({ typeId, key: 'gone' })).resolves.toBeDefined();
  });
  it('is the answer to exactly one of many concurrent deletions of the same object', async () => {
    const { id } = await token.object({ typeId });
    const { total } = await token.listObjects();
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () =>
        token.deleteObject(id).then(
          () => 'deleted',
          ({ reason }) => reason as string,
        ),
      ),
    );
    expect(outcomes.toSorted()).toEqual([...Array(9).fill('NOT_FOUND'), 'deleted']);
    expect((await token.listObjects()).total).toBe(total - 1);
  });
});

describe('If-Match', () => {
  it('deletes the object only in the version that it names', async () => {
    const { id } = await token.object({ typeId });
    expect((await errorOf(token.deleteObject(id, '"0"'))).reason).toBe('PRECONDITION_FAILED');
    const etag = await token.objectTag(id);
    expect(await token.deleteObject(id, etag)).toEqual({ success: true, id });
  });
  it.each(['1', 'W/', '"a', '"a" "b"', '*, "a"'])('is 400 when it is no list of ETags: %s', async (ifMatch) => {
    const { id } = await token.object({ typeId });
    expect(await reasonAndPathOf(token.deleteObject(id, ifMatch))).toEqual(['INVALID_REQUEST', '/If-Match']);
  });
});

describe('404', () => {
  it("is the same for a malformed, an unknown, a deleted, a hidden and another organization's id", async () => {
    const { id } = await token.object({ typeId });
    await token.deleteObject(id);
    const hidden = await token.object({ typeId: (await token.type({ visibility: 'private' })).id });
    const other = memory.organization();
    const foreign = await other.object({ typeId: (await other.type()).id });
    const user = memory.as(userOf(token.principal.organizationId));
    const unknown = await errorOf(user.deleteObject(newId()));
    expect(unknown.reason).toBe('NOT_FOUND');
    for (const given of ['x', id, hidden.id, foreign.id])
      expect(await errorOf(user.deleteObject(given))).toEqual(unknown);
    expect(await other.getObject(foreign.id)).toEqual(foreign);
  });
});
