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
  it('answers the object as it was created, also after a restart and for its id in upper case', async () => {
    const type = await token.type();
    const object = await token.object({ typeId: type.id });
    await memory.restart();
    expect(await token.getObject(object.id)).toEqual(object);
    expect(await token.getObject(object.id.toUpperCase())).toEqual(object);
  });
});

describe('404', () => {
  it("is the same for a malformed, an unknown, a hidden and another organization's id", async () => {
    const hidden = await token.object({ typeId: (await token.type({ visibility: 'private' })).id });
    const other = memory.organization();
    const foreign = await other.object({ typeId: (await other.type()).id });
    const user = memory.as(userOf(token.principal.organizationId));
    const unknown = await errorOf(user.getObject(newId()));
    expect(unknown.reason).toBe('NOT_FOUND');
    for (const id of ['', 'x', hidden.id, foreign.id, hidden.typeId])
      expect(await errorOf(user.getObject(id))).toEqual(unknown);
    expect((await token.getObject(hidden.id)).id).toBe(hidden.id);
  });
});
