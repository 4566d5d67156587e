import { newId } from 'platform/core/ids.ts';
import { denialOf, expectError, startAuth, until, type AuthFixture } from './fixture.ts';

describe('RevokeServerToken', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it.each(['id', 'name'] as const)(
    'by %s denies the token in every request that starts after it has returned, under load',
    async (by) => {
      const { asAdmin } = await fixture.withSecurityAdmin();
      const { serverToken, value: bearer } = await fixture.auth.createServerToken({ name: 'under load' }, asAdmin());
      let revoked = false;
      let accepted = 0;
      let denied = 0;
      const sendRequests = async () => {
        while (denied < 50) {
          const startedAfter = revoked;
          const [decision] = await fixture.authenticate({ bearer });
          if (startedAfter) {
            denied++;
            expect(denialOf(decision!)).toBe('UNAUTHENTICATED');
          } else if (decision!.principal) accepted++;
        }
      };
      const senders = Array.from({ length: 16 }, sendRequests);
      await until(
        async () => accepted,
        (count) => count >= 50,
      );
      await fixture.auth.revokeServerToken({ idOrName: serverToken![by] }, asAdmin());
      revoked = true;
      await Promise.all(senders);
    },
  );

  it('returns a revoked token unchanged by its id, and does not find it by its former name', async () => {
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
    await expectError(revoke('old'), 'NOT_FOUND');
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

  it('rejects an empty name', async () => {
    const { asAdmin } = await fixture.withSecurityAdmin();
    await expectError(fixture.auth.revokeServerToken({ idOrName: '' }, asAdmin()), 'INVALID_REQUEST');
  });

  it('gives the same NOT_FOUND for a token of another organization and for one that does not exist', async () => {
    const [here, there] = [await fixture.withSecurityAdmin(), await fixture.withSecurityAdmin()];
    const { serverToken, value } = await fixture.auth.createServerToken({ name: 'foreign' }, there.asAdmin());
    const errors = await Promise.all(
      [serverToken!.id, 'foreign', newId()].map((idOrName) =>
        expectError(fixture.auth.revokeServerToken({ idOrName }, here.asAdmin()), 'NOT_FOUND'),
      ),
    );
    expect(new Set(errors.map(({ message, facts }) => JSON.stringify({ message, facts }))).size).toBe(1);
    expect((await fixture.authenticate({ bearer: value }))[0]!.principal).toBeDefined();
  });
});
