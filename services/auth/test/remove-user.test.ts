import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('RemoveUser', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const removeUser = (organizationId: string, email: string) =>
    fixture.auth.removeUser({ email }, fixture.asOperator(organizationId));

  it('removes the membership at once and keeps the one in another organization', async () => {
    const { organizationId, user, asAdmin } = await fixture.withSecurityAdmin();
    const other = await fixture.createOrganization();
    await fixture.createUser(other, ['admin'], user.email);
    expect(await removeUser(organizationId, user.email)).toEqual({ id: user.id });
    await expectError(fixture.auth.listServerTokens({ pageSize: 0, afterId: '' }, asAdmin()), 'FORBIDDEN');
    await expectError(fixture.assume(organizationId, user.email), 'NOT_FOUND');
    expect((await fixture.assume(other, user.email)).roles).toEqual(['admin']);
  });

  it('fails with NOT_FOUND the second time; a user who is added again has the same id', async () => {
    const { organizationId, user } = await fixture.withSecurityAdmin();
    await removeUser(organizationId, user.email);
    await expectError(removeUser(organizationId, user.email), 'NOT_FOUND');
    expect((await fixture.createUser(organizationId, [], user.email)).id).toBe(user.id);
  });

  it('keeps the server tokens that the user created', async () => {
    const { organizationId, user, asAdmin } = await fixture.withSecurityAdmin();
    const { value } = await fixture.auth.createServerToken({ name: 'stays' }, asAdmin());
    await removeUser(organizationId, user.email);
    expect((await fixture.authenticate({ bearer: value }))[0]!.principal!.name).toBe('stays');
  });
});
