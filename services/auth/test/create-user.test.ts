import { newId } from 'platform/core/ids.ts';
import { refusalOf, startAuth, type AuthFixture } from './auth-fixture.ts';

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

  it('answers the user with email in lower case, roles and groups once each', async () => {
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

  it('adds who is known elsewhere as the same user, with roles of its own in each organization', async () => {
    const [here, there] = [await fixture.createOrganization(), await fixture.createOrganization()];
    const first = await create(here, { email: 'both@example.com', roles: ['admin'] });
    const second = await create(there, { email: 'BOTH@example.com', groups: ['red'] });
    expect(second.user).toMatchObject({ id: first.user!.id, roles: [], groups: ['red'] });
    expect((await fixture.assume(here, 'both@example.com')).roles).toEqual(['admin']);
  });

  it('refuses a second membership in one organization, with the id', async () => {
    const organizationId = await fixture.createOrganization();
    const { user } = await create(organizationId, {});
    expect((await refusalOf(create(organizationId, { email: 'ADA@example.com' }), 'ALREADY_EXISTS')).facts).toEqual({
      id: user!.id,
    });
  });

  it('makes one user of an email that many organizations add at once', async () => {
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
  ])('names %s when it refuses %j', async (path, given) => {
    expect(
      (await refusalOf(create(await fixture.createOrganization(), given), 'INVALID_REQUEST')).details[0]!.path,
    ).toBe(path);
  });

  it('answers NOT_FOUND for an unknown organization', () => refusalOf(create(newId(), {}), 'NOT_FOUND'));
});
