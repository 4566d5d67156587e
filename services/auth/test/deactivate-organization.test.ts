import { newId } from 'platform/core/ids.ts';
import { denialOf, expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('DeactivateOrganization', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const deactivate = (id: string) => fixture.auth.deactivateOrganization({ id }, fixture.asOperator());

  it('denies the tokens of the organization from the next request on, and those of no other organization', async () => {
    const [deactivated, active] = [await fixture.withSecurityAdmin(), await fixture.withSecurityAdmin()];
    const { value } = await fixture.auth.createServerToken({ name: 'one' }, deactivated.asAdmin());
    const { value: other } = await fixture.auth.createServerToken({ name: 'one' }, active.asAdmin());
    expect((await fixture.authenticate({ bearer: value }))[0]!.principal).toBeDefined();
    expect((await deactivate(deactivated.organizationId)).organization!.state).toBe('deactivated');
    const [denied, accepted] = await fixture.authenticate({ bearer: value }, { bearer: other });
    expect(denialOf(denied!)).toBe('UNAUTHENTICATED');
    expect(accepted!.principal!.organizationId).toBe(active.organizationId);
    await expectError(fixture.auth.createServerToken({ name: 'two' }, deactivated.asAdmin()), 'FORBIDDEN');
    await expectError(fixture.assume(deactivated.organizationId, deactivated.user.email), 'FORBIDDEN');
  });

  it('returns the same when it is repeated, and writes no second audit entry', async () => {
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

  it('rejects an unknown id with NOT_FOUND', () => expectError(deactivate(newId()), 'NOT_FOUND'));
  it('rejects an empty id', () => expectError(deactivate(''), 'INVALID_REQUEST'));
});
