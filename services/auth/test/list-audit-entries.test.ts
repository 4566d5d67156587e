import { DAY_MS } from 'platform/core/clock.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('ListAuditEntries', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('lists the entries of one organization, newest first, by action and in pages', async () => {
    const here = await fixture.withSecurityAdmin();
    await fixture.withSecurityAdmin();
    for (const name of ['one', 'two', 'three']) await fixture.auth.createServerToken({ name }, here.asAdmin());
    const all = await fixture.auditTrail(here.organizationId, (actions) => actions.length >= 6);
    expect(all.map(({ action }) => action)).toEqual([
      'server_token.create',
      'server_token.create',
      'server_token.create',
      'user.assume',
      'user.create',
      'organization.create',
    ]);
    const list = async (pageSize: number, beforeId: string, action: string) =>
      (await fixture.auth.listAuditEntries({ pageSize, beforeId, action }, fixture.asOperator(here.organizationId)))
        .entries;
    expect(await list(2, '', '')).toEqual(all.slice(0, 2));
    expect(await list(2, all[1]!.id, '')).toEqual(all.slice(2, 4));
    expect(await list(2, all[1]!.id, 'server_token.create')).toEqual(all.slice(2, 3));
    expect(await list(2, all[1]!.id.toUpperCase(), '')).toEqual(all.slice(2, 4));
    expect(await list(0, '', 'no.such')).toEqual([]);
    await expectError(list(2, all[1]!.id.slice(0, 20), ''), 'INVALID_REQUEST');
    await expectError(list(-1, '', ''), 'INVALID_REQUEST');
  });

  it('no longer lists an entry that is older than 400 days', async () => {
    const organizationId = await fixture.createOrganization();
    await fixture.auditTrail(organizationId, (actions) => actions.length === 1);
    fixture.clock.advance(400 * DAY_MS);
    await fixture.running.runJob('audit-retention');
    expect(await fixture.auditTrail(organizationId)).toHaveLength(1);
    await fixture.auth.deactivateOrganization({ id: organizationId }, fixture.asOperator());
    await fixture.auditTrail(organizationId, (actions) => actions.length === 2);
    fixture.clock.advance(1);
    expect((await fixture.running.runJob('audit-retention')).count).toBeGreaterThan(0);
    expect((await fixture.auditTrail(organizationId)).map(({ action }) => action)).toEqual(['organization.deactivate']);
  });
});
