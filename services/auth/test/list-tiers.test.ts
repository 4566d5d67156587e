import { startAuth, type AuthFixture } from './fixture.ts';

describe('ListTiers', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('says what each tier holds: the capabilities and limits that its organizations get', async () => {
    const { tiers } = await fixture.auth.listTiers({}, fixture.asOperator());
    expect(tiers.map(({ name, capabilities }) => [name, capabilities])).toEqual([
      ['starter', ['memory']],
      ['professional', ['memory', 'agents']],
      ['enterprise', ['memory', 'agents']],
    ]);
    for (const { name, limits } of tiers)
      expect((await fixture.withSecurityAdmin(name)).principal.limits).toEqual(limits);
  });
});
