import { refusalOf, startAuth, type AuthFixture } from './auth-fixture.ts';

describe('SetUserRoles', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const setRoles = (organizationId: string, email: string, roles: string[]) =>
    fixture.auth.setUserRoles({ email, roles }, fixture.asOperator(organizationId));

  it('holds from the next call on: a principal made before it does not keep what was taken', async () => {
    const { organizationId, user, asAdmin } = await fixture.withSecurityAdmin();
    await fixture.auth.createServerToken({ name: 'before' }, asAdmin());
    expect((await setRoles(organizationId, user.email, ['admin'])).user!.roles).toEqual(['admin']);
    await refusalOf(fixture.auth.createServerToken({ name: 'after' }, asAdmin()), 'FORBIDDEN');
    expect((await fixture.assume(organizationId, user.email)).roles).toEqual(['admin']);
  });

  it('loses neither of two changes at once', async () => {
    const organizationId = await fixture.createOrganization();
    const { email } = await fixture.createUser(organizationId, []);
    await Promise.all([
      setRoles(organizationId, email, ['admin']),
      fixture.auth.setUserGroups({ email, groups: ['red'] }, fixture.asOperator(organizationId)),
    ]);
    expect(await fixture.assume(organizationId, email)).toMatchObject({ roles: ['admin'], groups: ['red'] });
  });

  it('refuses an unknown role and answers NOT_FOUND for a user of another organization', async () => {
    const { organizationId, user } = await fixture.withSecurityAdmin();
    await refusalOf(setRoles(organizationId, user.email, ['owner']), 'INVALID_REQUEST');
    await refusalOf(setRoles(await fixture.createOrganization(), user.email, []), 'NOT_FOUND');
  });
});
