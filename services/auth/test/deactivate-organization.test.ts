import { newId } from 'platform/core/ids.ts';
import { denialOf, refusalOf, startAuth, type AuthFixture } from './auth-fixture.ts';

describe('DeactivateOrganization', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const deactivate = (id: string) => fixture.auth.deactivateOrganization({ id }, fixture.asOperator());

  it("refuses the tokens of the organization from the next request on, and no other organization's", async () => {
    const [gone, staying] = [await fixture.withSecurityAdmin(), await fixture.withSecurityAdmin()];
    const { value } = await fixture.auth.createServerToken({ name: 'one' }, gone.asAdmin());
    const { value: other } = await fixture.auth.createServerToken({ name: 'one' }, staying.asAdmin());
    expect((await fixture.authenticate({ bearer: value }))[0]!.principal).toBeDefined();
    expect((await deactivate(gone.organizationId)).organization!.state).toBe('deactivated');
    const [refused, accepted] = await fixture.authenticate({ bearer: value }, { bearer: other });
    expect(denialOf(refused!)).toBe('UNAUTHENTICATED');
    expect(accepted!.principal!.organizationId).toBe(staying.organizationId);
    await refusalOf(fixture.auth.createServerToken({ name: 'two' }, gone.asAdmin()), 'FORBIDDEN');
    await refusalOf(fixture.assume(gone.organizationId, gone.user.email), 'FORBIDDEN');
  });

  it('done again answers the same and records nothing more', async () => {
    const id = await fixture.createOrganization();
    const first = await deactivate(id);
    fixture.clock.advance(1_000);
    expect(await deactivate(id)).toEqual(first);
    const entries = await fixture.auditTrail(id, (actions) => actions.length >= 2);
    expect(entries.map(({ action }) => action)).toEqual(['organization.deactivate', 'organization.create']);
    expect(entries[0]).toMatchObject({
      outcome: 'success',
      actorKind: 'operator',
      actorName: 'test',
      targetType: 'organization',
      targetId: id,
    });
  });

  it('answers NOT_FOUND for an unknown id', () => refusalOf(deactivate(newId()), 'NOT_FOUND'));
});
