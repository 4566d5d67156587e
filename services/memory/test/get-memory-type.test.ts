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
  it('answers the type as it was created, also for its id in upper case', async () => {
    const type = await token.type();
    expect(await token.getType(type.id)).toEqual(type);
    expect(await token.getType(type.id.toUpperCase())).toEqual(type);
  });
  it('shows a private type to a server token and to an admin', async () => {
    const { id } = await token.type({ visibility: 'private' });
    const admin = memory.as(userOf(token.principal.organizationId, { roles: ['admin'] }));
    expect((await admin.getType(id)).id).toBe(id);
  });
});

describe('404', () => {
  it("is the same for a malformed, an unknown, a hidden and another organization's id", async () => {
    const hidden = await token.type({ visibility: 'private' });
    const foreign = await memory.organization().type();
    const user = memory.as(userOf(token.principal.organizationId, { roles: ['security_admin'] }));
    const unknown = await errorOf(user.getType(newId()));
    expect(unknown.reason).toBe('NOT_FOUND');
    for (const id of ['', 'x', hidden.id, foreign.id]) expect(await errorOf(user.getType(id))).toEqual(unknown);
  });
});
