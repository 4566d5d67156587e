import { newId } from 'platform/core/ids.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('CreateUser', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const create = (
    organizationId: string,
    given: Partial<{ email: string; name: string; roles: string[]; groups: string[] }>,
  ) =>
    fixture.auth.createUser(
      { email: 'ada@example.com', name: 'Ada', roles: [], groups: [], ...given },
      fixture.asOperator(organizationId),
    );

  it('returns the user with the email in lower case and each role and group once', async () => {
    const { user } = await create(await fixture.createOrganization(), {
      email: 'Ada@Example.COM',
      roles: ['security_admin', 'admin', 'admin'],
      groups: ['red', 'blue', 'red'],
    });
    expect(user).toMatchObject({
      email: 'ada@example.com',
      name: 'Ada',
      roles: ['admin', 'security_admin'],
      groups: ['blue', 'red'],
    });
  });

  it('adds a user of another organization as the same user, with separate roles in each organization', async () => {
    const [here, there] = [await fixture.createOrganization(), await fixture.createOrganization()];
    const first = await create(here, { email: 'both@example.com', roles: ['admin'] });
    const second = await create(there, { email: 'BOTH@example.com', groups: ['red'] });
    expect(second.user).toMatchObject({ id: first.user!.id, roles: [], groups: ['red'] });
    expect((await fixture.assume(here, 'both@example.com')).roles).toEqual(['admin']);
  });

  it('rejects a second membership in one organization, with the id of the user', async () => {
    const organizationId = await fixture.createOrganization();
    const { user } = await create(organizationId, {});
    expect((await expectError(create(organizationId, { email: 'ADA@example.com' }), 'ALREADY_EXISTS')).facts).toEqual({
      id: user!.id,
    });
  });

  it('creates one user when many organizations add one email at once', async () => {
    const organizations = await Promise.all(Array.from({ length: 6 }, () => fixture.createOrganization()));
    const created = await Promise.all(
      organizations.map((organizationId) => create(organizationId, { email: 'raced@example.com' })),
    );
    expect(new Set(created.map(({ user }) => user!.id)).size).toBe(1);
  });

  it.each([
    ['/email', { email: 'nobody' }],
    ['/email', { email: 'a b@example.com' }],
    ['/name', { name: '' }],
    ['/roles/1', { roles: ['admin', 'owner'] }],
    ['/groups/0', { groups: [''] }],
    ['/groups', { groups: Array.from({ length: 101 }, (_, n) => String(n)) }],
  ])('names %s when it rejects %j', async (path, given) => {
    expect(
      (await expectError(create(await fixture.createOrganization(), given), 'INVALID_REQUEST')).details[0]!.path,
    ).toBe(path);
  });

  it('rejects an unknown organization with NOT_FOUND', () => expectError(create(newId(), {}), 'NOT_FOUND'));
});
