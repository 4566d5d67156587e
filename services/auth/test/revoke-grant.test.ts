import { denialOf, expectError, startAuth, type AuthFixture } from './fixture.ts';
import { userWithJwt } from './jwts.ts';

describe('RevokeGrant', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('JWTs under the grant are refused on the next request, and others are not; a repeat changes nothing', async () => {
    const { organizationId, user, jwt, grant } = await userWithJwt(fixture);
    const asOperator = fixture.asOperator(organizationId);
    const second = await fixture.auth.issueJwt({ email: user.email }, asOperator);
    const decide = async (bearer: string) => denialOf((await fixture.authenticate({ bearer }))[0]!);
    expect(await decide(jwt)).toBeUndefined();
    const { grant: revoked } = await fixture.auth.revokeGrant({ id: grant.id.toUpperCase() }, asOperator);
    expect(revoked).toMatchObject({ id: grant.id, revokedAt: expect.any(String) });
    expect([await decide(jwt), await decide(second.jwt)]).toEqual(['UNAUTHENTICATED', undefined]);
    expect((await fixture.auth.revokeGrant({ id: grant.id }, asOperator)).grant).toEqual(revoked);
    const trail = await fixture.auditTrail(organizationId, (actions) => actions.includes('grant.revoke'));
    expect(trail.filter(({ action }) => action === 'grant.revoke')).toHaveLength(1);
  });

  it("another organization's grant is not found", async () => {
    const [{ grant }, other] = await Promise.all([userWithJwt(fixture), userWithJwt(fixture)]);
    const revoke = (id: string) => fixture.auth.revokeGrant({ id }, fixture.asOperator(other.organizationId));
    await expectError(revoke(grant.id), 'NOT_FOUND');
    await expectError(revoke('nonsense'), 'NOT_FOUND');
    await expectError(revoke(''), 'INVALID_REQUEST');
  });
});
