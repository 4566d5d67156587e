import { refusalOf, startAuth, type AuthFixture } from './auth-fixture.ts';

describe('SetUserGroups', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const setGroups = (organizationId: string, email: string, groups: string[]) =>
    fixture.auth.setUserGroups({ email, groups }, fixture.asOperator(organizationId));

  it('replaces the groups and leaves the roles', async () => {
    const organizationId = await fixture.createOrganization();
    const { email } = await fixture.createUser(organizationId, ['admin'], undefined, ['old']);
    expect((await setGroups(organizationId, email, ['red', 'blue'])).user).toMatchObject({
      groups: ['blue', 'red'],
      roles: ['admin'],
    });
    expect((await setGroups(organizationId, email, [])).user!.groups).toEqual([]);
  });

  it('refuses an unprintable name and answers NOT_FOUND for an unknown user', async () => {
    const organizationId = await fixture.createOrganization();
    const { email } = await fixture.createUser(organizationId, []);
    expect(
      (await refusalOf(setGroups(organizationId, email, ['ok', 'a\tb']), 'INVALID_REQUEST')).details[0]!.path,
    ).toBe('/groups/1');
    await refusalOf(setGroups(organizationId, 'nobody@example.com', []), 'NOT_FOUND');
  });
});
