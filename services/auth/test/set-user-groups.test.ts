import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('SetUserGroups', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const setGroups = (organizationId: string, email: string, groups: string[]) =>
    fixture.auth.setUserGroups({ email, groups }, fixture.asOperator(organizationId));

  it('replaces the groups and keeps the roles', async () => {
    const organizationId = await fixture.createOrganization();
    const { email } = await fixture.createUser(organizationId, ['admin'], undefined, ['old']);
    expect((await setGroups(organizationId, email, ['red', 'blue'])).user).toMatchObject({
      groups: ['blue', 'red'],
      roles: ['admin'],
    });
    expect((await setGroups(organizationId, email, [])).user!.groups).toEqual([]);
  });

  it('says in the audit trail what each of several concurrent changes replaced', async () => {
    const organizationId = await fixture.createOrganization();
    const { email } = await fixture.createUser(organizationId, []);
    await Promise.all(Array.from({ length: 8 }, (_, n) => setGroups(organizationId, email, [`group ${n}`])));
    const isDone = (actions: string[]) => actions.filter((action) => action === 'user.set_groups').length === 8;
    const trail = (await fixture.auditTrail(organizationId, isDone)).reverse();
    const changes = trail.filter(({ action }) => action === 'user.set_groups').map((entry) => entry.changes[0]!);
    expect(new Set(changes.map(({ before }) => before.join())).size).toBe(8);
  });

  it('rejects an unprintable name, and an unknown user with NOT_FOUND', async () => {
    const organizationId = await fixture.createOrganization();
    const { email } = await fixture.createUser(organizationId, []);
    expect(
      (await expectError(setGroups(organizationId, email, ['ok', 'a\tb']), 'INVALID_REQUEST')).details[0]!.path,
    ).toBe('/groups/1');
    await expectError(setGroups(organizationId, 'nobody@example.com', []), 'NOT_FOUND');
  });
});
