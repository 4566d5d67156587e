import { newId } from 'platform/core/ids.ts';
import { denialOf, refusalOf, startAuth, until, type AuthFixture } from './auth-fixture.ts';

describe('RevokeServerToken', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it.each(['id', 'name'] as const)(
    'by %s refuses the token in every request that starts after it answered, while others are hammering',
    async (by) => {
      const { asAdmin } = await fixture.withSecurityAdmin();
      const { serverToken, value: bearer } = await fixture.auth.createServerToken({ name: 'hammered' }, asAdmin());
      let revoked = false;
      let before = 0;
      let after = 0;
      const hammer = async () => {
        while (after < 50) {
          const startedAfter = revoked;
          const [decision] = await fixture.authenticate({ bearer });
          if (startedAfter) {
            after++;
            expect(denialOf(decision!)).toBe('UNAUTHENTICATED');
          } else if (decision!.principal) before++;
        }
      };
      const hammers = Array.from({ length: 16 }, hammer);
      await until(
        async () => before,
        (accepted) => accepted >= 50,
      );
      await fixture.auth.revokeServerToken({ idOrName: serverToken![by] }, asAdmin());
      revoked = true;
      await Promise.all(hammers);
    },
  );

  it('answers a token that was revoked before as it is, by id, and NOT_FOUND by its former name', async () => {
    const { organizationId, asAdmin } = await fixture.withSecurityAdmin();
    const { serverToken } = await fixture.auth.createServerToken({ name: 'Old' }, asAdmin());
    const revoke = (idOrName: string) => fixture.auth.revokeServerToken({ idOrName }, asAdmin());
    const first = await revoke('old');
    expect(first.serverToken).toMatchObject({
      id: serverToken!.id,
      revokedAt: new Date(fixture.clock.now()).toISOString(),
    });
    fixture.clock.advance(1_000);
    expect(await revoke(serverToken!.id)).toEqual(first);
    await refusalOf(revoke('old'), 'NOT_FOUND');
    const actions = (await fixture.auditTrail(organizationId, (found) => found.length >= 5)).map(
      ({ action }) => action,
    );
    expect(actions).toEqual([
      'server_token.revoke',
      'server_token.create',
      'user.assume',
      'user.create',
      'organization.create',
    ]);
  });

  it('answers NOT_FOUND alike for a token of another organization and one that does not exist', async () => {
    const [here, there] = [await fixture.withSecurityAdmin(), await fixture.withSecurityAdmin()];
    const { serverToken, value } = await fixture.auth.createServerToken({ name: 'foreign' }, there.asAdmin());
    const errors = await Promise.all(
      [serverToken!.id, 'foreign', newId()].map((idOrName) =>
        refusalOf(fixture.auth.revokeServerToken({ idOrName }, here.asAdmin()), 'NOT_FOUND'),
      ),
    );
    expect(new Set(errors.map(({ message, facts }) => JSON.stringify({ message, facts }))).size).toBe(1);
    expect((await fixture.authenticate({ bearer: value }))[0]!.principal).toBeDefined();
  });
});
