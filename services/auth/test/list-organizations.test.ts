import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('ListOrganizations', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const list = async (pageSize: number, afterName: string) =>
    (await fixture.auth.listOrganizations({ pageSize, afterName }, fixture.asOperator())).organizations.map(
      ({ name }) => name,
    );

  it('lists every organization once, by name regardless of case, in pages', async () => {
    for (const name of ['delta', 'Alpha', 'charlie', 'Bravo'])
      await fixture.auth.createOrganization({ name, tier: 'starter' }, fixture.asOperator());
    expect(await list(0, '')).toEqual(['Alpha', 'Bravo', 'charlie', 'delta']);
    const first = await list(3, '');
    expect(first).toEqual(['Alpha', 'Bravo', 'charlie']);
    expect(await list(3, first[2]!)).toEqual(['delta']);
    expect(await list(3, 'ALPHA')).toEqual(['Bravo', 'charlie', 'delta']);
  });

  it.each([-1, 1_001])('rejects the page size %i', (pageSize) => expectError(list(pageSize, ''), 'INVALID_REQUEST'));
});
