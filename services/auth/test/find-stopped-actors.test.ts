import { AuthServiceService, type RunActor } from 'proto/auth/v1/auth.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import { newId } from 'platform/core/ids.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('FindStoppedActors', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  /** An organization with a server token, and what auth says of runs that this token or a user of it began. */
  async function organization() {
    const { organizationId, asAdmin } = await fixture.withSecurityAdmin();
    const { serverToken } = await fixture.auth.createServerToken({ name: 'ci' }, asAdmin());
    const ofToken: RunActor = { organizationId, serverTokenId: serverToken!.id };
    const ofUser: RunActor = { organizationId, serverTokenId: '' };
    return { organizationId, asAdmin, ofToken, ofUser };
  }
  const stopped = async (...actors: RunActor[]): Promise<RunActor[]> =>
    (
      await fixture.running
        .client(AuthServiceService, 'agents')
        .findStoppedActors({ actors }, fixture.as(servicePrincipal('agents')))
    ).stopped;

  it('names everybody of an organization as long as it is deactivated, and nobody of another one', async () => {
    const [here, there] = [await organization(), await organization()];
    const all = [here.ofToken, here.ofUser, there.ofToken, there.ofUser];
    expect(await stopped(...all)).toEqual([]);
    await fixture.auth.deactivateOrganization({ id: here.organizationId }, fixture.asOperator());
    expect(await stopped(...all)).toEqual([here.ofToken, here.ofUser]);
    await fixture.auth.activateOrganization({ id: here.organizationId }, fixture.asOperator());
    expect(await stopped(...all)).toEqual([]);
  });

  it('names a token that was revoked with its runs, at once or later, and no other one', async () => {
    const { ofToken, ofUser, asAdmin, organizationId } = await organization();
    const revoke = async (cancelRuns?: boolean) =>
      (await fixture.auth.revokeServerToken({ idOrName: ofToken.serverTokenId, cancelRuns }, asAdmin())).serverToken!;
    const first = await revoke();
    expect([first.runsCancelled, await stopped(ofToken, ofUser)]).toEqual([false, []]);
    fixture.clock.advance(1_000);
    expect(await revoke(true)).toEqual({ ...first, runsCancelled: true });
    expect(await stopped(ofToken, ofUser)).toEqual([ofToken]);
    expect(await revoke()).toEqual({ ...first, runsCancelled: true });
    expect(await stopped({ ...ofToken, organizationId: newId() })).toEqual([]);
    const entries = await fixture.auditTrail(
      organizationId,
      (actions) => actions.filter((action) => action === 'server_token.revoke').length >= 2,
    );
    const revocations = entries.filter(({ action }) => action === 'server_token.revoke');
    expect(revocations.map(({ changes }) => changes.map(({ field }) => field).includes('runsCancelled'))).toEqual([
      true,
      false,
    ]);

    const at = await organization();
    await fixture.auth.revokeServerToken({ idOrName: 'ci', cancelRuns: true }, at.asAdmin());
    expect(await stopped(at.ofToken, at.ofUser)).toEqual([at.ofToken]);
  });

  it('knows nothing of unknown ones, and answers agents alone', async () => {
    expect(await stopped({ organizationId: newId(), serverTokenId: newId() })).toEqual([]);
    expect(await stopped()).toEqual([]);
    await expectError(fixture.gateway.findStoppedActors({ actors: [] }, fixture.asGateway()), 'FORBIDDEN');
  });
});
