import { isoTime } from 'platform/core/clock.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('ListServerTokens', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('lists the tokens of one organization, with the revoked ones, newest first, in pages', async () => {
    const [here, there] = [await fixture.withSecurityAdmin(), await fixture.withSecurityAdmin()];
    await fixture.auth.createServerToken({ name: 'foreign' }, there.asAdmin());
    for (const name of ['one', 'two', 'three']) await fixture.auth.createServerToken({ name }, here.asAdmin());
    await fixture.auth.revokeServerToken({ idOrName: 'two' }, here.asAdmin());
    const list = async (pageSize: number, afterId: string) =>
      (await fixture.auth.listServerTokens({ pageSize, afterId }, here.asAdmin())).serverTokens;
    const all = await list(0, '');
    expect(all.map(({ name, revokedAt }) => [name, revokedAt !== undefined])).toEqual([
      ['three', false],
      ['two', true],
      ['one', false],
    ]);
    expect(await list(2, '')).toEqual(all.slice(0, 2));
    expect(await list(2, all[1]!.id)).toEqual(all.slice(2));
    await expectError(list(1_001, ''), 'INVALID_REQUEST');
  });

  it('lists live tokens that are unused for a time; one that was never used counts from its creation', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    const create = (name: string, afterSeconds?: number) => {
      const expiresAt = afterSeconds && isoTime(fixture.clock.now() + afterSeconds * 1_000);
      return fixture.auth.createServerToken({ name, expiresAt: expiresAt || undefined }, asAdmin());
    };
    await create('never used');
    await create('expired', 50);
    await create('revoked');
    await fixture.auth.revokeServerToken({ idOrName: 'revoked' }, asAdmin());
    const { value: bearer } = await create('used');
    fixture.clock.advance(100_000);
    await fixture.authenticate({ bearer });
    await create('new');
    const names = async (unusedForSeconds: number, pageSize = 0, afterId = '') => {
      const request = { unusedForSeconds, pageSize, afterId };
      return (await fixture.auth.listServerTokens(request, asAdmin())).serverTokens.map(({ name }) => name);
    };
    expect(await names(100)).toEqual(['never used']);
    expect(await names(101)).toEqual([]);
    fixture.clock.advance(100_000);
    expect(await names(100)).toEqual(['new', 'used', 'never used']);
    expect(await names(100, 1)).toEqual(['new']);
    expect(await names(200, 1)).toEqual(['never used']);
    await expectError(names(-1), 'INVALID_REQUEST');
  });

  it('is denied to a user without the role security_admin', async () => {
    const organizationId = await fixture.createOrganization();
    const { email } = await fixture.createUser(organizationId, ['admin']);
    await expectError(
      fixture.auth.listServerTokens(
        { pageSize: 0, afterId: '' },
        fixture.as(await fixture.assume(organizationId, email)),
      ),
      'FORBIDDEN',
    );
  });
});
