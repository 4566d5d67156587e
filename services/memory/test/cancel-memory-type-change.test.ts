import { newId } from 'platform/core/ids.ts';
import { errorOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(() => {
  token = memory.organization();
});

// test/type-changes.test.ts cancels what is under way.
describe('404', () => {
  it('when nothing is under way, nothing any more, or the type does not exist', async () => {
    const { id } = await token.type();
    const idle = { reason: 'NOT_FOUND', message: 'Nothing is under way for this memory type' };
    expect(await errorOf(token.cancelChange(id))).toMatchObject(idle);
    await token.object({ typeId: id });
    await token.putType(id, { jsonSchema: '{}' });
    expect(await errorOf(token.cancelChange(id))).toMatchObject(idle);
    for (const unknown of [newId(), 'x'])
      expect(await errorOf(token.cancelChange(unknown))).toMatchObject({ message: 'Memory type not found' });
  });
  it('for a type of another organization, or one that the user may not see', async () => {
    const { id } = await token.type({ visibility: 'private' });
    const user = memory.as(userOf(token.principal.organizationId));
    for (const stranger of [memory.organization(), user])
      expect(await errorOf(stranger.cancelChange(id))).toMatchObject({ message: 'Memory type not found' });
  });
});
