import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('CreateOrganization', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const create = (name: string, tier = 'starter') =>
    fixture.auth.createOrganization({ name, tier }, fixture.asOperator());

  it('returns the organization, active, with a new id', async () => {
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

  it('rejects a name that differs only in case from another, with the id of that organization', async () => {
    const { organization } = await create('Taken');
    expect((await expectError(create('tAKEN'), 'ALREADY_EXISTS')).facts).toEqual({ id: organization!.id });
  });

  it('creates one organization when many are created at once with one name', async () => {
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => create('Raced')));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) if (result.status === 'rejected') expect(result.reason.reason).toBe('ALREADY_EXISTS');
  });

  it.each(['', ' padded', 'padded ', 'line\nbreak', 'nul\0', 'x'.repeat(101)])('rejects the name %j', async (name) => {
    expect((await expectError(create(name), 'INVALID_REQUEST')).details[0]!.path).toBe('/name');
  });

  it.each(['', 'gold', '__proto__'])('rejects the tier %j and names the tiers that exist', async (tier) => {
    expect((await expectError(create('Nowhere', tier), 'INVALID_REQUEST')).details).toEqual([
      { path: '/tier', message: 'tier must be one of starter, professional, enterprise' },
    ]);
  });
});
