import { refusalOf, startAuth, type AuthFixture } from './auth-fixture.ts';

describe('CreateOrganization', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const create = (name: string, tier = 'starter') =>
    fixture.auth.createOrganization({ name, tier }, fixture.asOperator());

  it('answers the organization, active, with an id of its own', async () => {
    const { organization } = await create('Acme Ünited', 'professional');
    expect(organization).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Acme Ünited',
      tier: 'professional',
      state: 'active',
      createdAt: new Date(fixture.clock.now()).toISOString(),
      updatedAt: new Date(fixture.clock.now()).toISOString(),
    });
  });

  it('refuses a name that differs only in case, with the id of the holder', async () => {
    const { organization } = await create('Taken');
    expect((await refusalOf(create('tAKEN'), 'ALREADY_EXISTS')).facts).toEqual({ id: organization!.id });
  });

  it('lets one of many at once have a name', async () => {
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => create('Raced')));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) if (result.status === 'rejected') expect(result.reason.reason).toBe('ALREADY_EXISTS');
  });

  it.each(['', ' padded', 'padded ', 'line\nbreak', 'nul\0', 'x'.repeat(101)])('refuses the name %j', async (name) => {
    expect((await refusalOf(create(name), 'INVALID_REQUEST')).details[0]!.path).toBe('/name');
  });

  it.each(['', 'gold', '__proto__'])('refuses the tier %j, naming those there are', async (tier) => {
    expect((await refusalOf(create('Nowhere', tier), 'INVALID_REQUEST')).details).toEqual([
      { path: '/tier', message: 'must be one of starter, professional, enterprise' },
    ]);
  });
});
