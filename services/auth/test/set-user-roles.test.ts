import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('SetUserRoles', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const setRoles = (organizationId: string, email: string, roles: string[]) =>
    fixture.auth.setUserRoles({ email, roles }, fixture.asOperator(organizationId));

  it('applies from the next call on, even to a principal with the former roles', async () => {
    const { organizationId, user, asAdmin } = await fixture.withSecurityAdmin();
    await fixture.auth.createServerToken({ name: 'before' }, asAdmin());
    expect((await setRoles(organizationId, user.email, ['admin'])).user!.roles).toEqual(['admin']);
    await expectError(fixture.auth.createServerToken({ name: 'after' }, asAdmin()), 'FORBIDDEN');
    expect((await fixture.assume(organizationId, user.email)).roles).toEqual(['admin']);
  });

  it('loses neither of two concurrent changes', async () => {
    const organizationId = await fixture.createOrganization();
    const { email } = await fixture.createUser(organizationId, []);
    await Promise.all([
      setRoles(organizationId, email, ['admin']),
      fixture.auth.setUserGroups({ email, groups: ['red'] }, fixture.asOperator(organizationId)),
    ]);
    expect(await fixture.assume(organizationId, email)).toMatchObject({ roles: ['admin'], groups: ['red'] });
  });

  it('rejects an unknown role, and a user of another organization with NOT_FOUND', async () => {
    const { organizationId, user } = await fixture.withSecurityAdmin();
    await expectError(setRoles(organizationId, user.email, ['owner']), 'INVALID_REQUEST');
    await expectError(setRoles(await fixture.createOrganization(), user.email, []), 'NOT_FOUND');
  });
});
