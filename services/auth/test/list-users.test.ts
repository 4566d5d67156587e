import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('ListUsers', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('lists the users of one organization, by email, in pages', async () => {
    const [here, there] = [await fixture.createOrganization(), await fixture.createOrganization()];
    for (const letter of ['c', 'a', 'b']) await fixture.createUser(here, [], `${letter}@example.com`);
    await fixture.createUser(there, [], 'aa@example.com');
    const list = async (pageSize: number, afterEmail: string) =>
      (await fixture.auth.listUsers({ pageSize, afterEmail }, fixture.asOperator(here))).users.map(
        ({ email }) => email,
      );
    expect(await list(0, '')).toEqual(['a@example.com', 'b@example.com', 'c@example.com']);
    expect(await list(2, '')).toEqual(['a@example.com', 'b@example.com']);
    expect(await list(2, 'B@example.com')).toEqual(['c@example.com']);
    await expectError(list(-1, ''), 'INVALID_REQUEST');
  });
});
