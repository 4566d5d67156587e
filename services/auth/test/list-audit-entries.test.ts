import { DAY_MS } from 'platform/core/clock.ts';
import type { AuditEntry, ListAuditEntriesRequest } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
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
    await expectError(list(2, newId(), ''), 'NOT_FOUND');
    await expectError(list(-1, '', ''), 'INVALID_REQUEST');
  });

  it('lists what one actor did, what was done to one resource, one outcome, and a span of time', async () => {
    const here = await fixture.withSecurityAdmin();
    const { serverToken } = await fixture.auth.createServerToken({ name: 'filtered' }, here.asAdmin());
    fixture.clock.advance(1_000);
    await fixture.auth.revokeServerToken({ idOrName: 'filtered' }, here.asAdmin());
    const all = await fixture.auditTrail(here.organizationId, (actions) => actions.length >= 5);
    const [revoke, create, assume] = all as [AuditEntry, AuditEntry, AuditEntry];
    const found = async (filter: Partial<ListAuditEntriesRequest>): Promise<string[]> => {
      const request = { pageSize: 0, beforeId: '', action: '', ...filter };
      const { entries } = await fixture.auth.listAuditEntries(request, fixture.asOperator(here.organizationId));
      return entries.map(({ id }) => id);
    };
    const ids = (...entries: readonly AuditEntry[]): string[] => entries.map(({ id }) => id);
    const resource = { type: 'server_token', id: serverToken!.id };
    const both = ids(revoke, create);
    expect(await found({ actor: create.actorId })).toEqual(both);
    expect(await found({ actor: create.actorId.toUpperCase() })).toEqual(both);
    expect(await found({ actor: create.actorName })).toEqual(both);
    expect(await found({ actor: assume.actorName })).toEqual(ids(...all.slice(2)));
    expect(await found({ actor: 'nobody' })).toEqual([]);
    expect(await found({ resource })).toEqual(both);
    expect(await found({ resource: { ...resource, type: 'user' } })).toEqual([]);
    expect(await found({ resource, action: 'server_token.revoke', actor: create.actorName })).toEqual(ids(revoke));
    expect(await found({ resource, beforeId: revoke.id })).toEqual(ids(create));
    expect(await found({ outcome: 'success' })).toEqual(ids(...all));
    expect(await found({ outcome: 'denied' })).toEqual([]);
    expect(await found({ since: revoke.at })).toEqual(ids(revoke));
    expect(await found({ until: revoke.at })).toEqual(ids(...all.slice(1)));
    expect(await found({ since: revoke.at, until: revoke.at })).toEqual([]);
    expect(await found({ since: revoke.at.replace('Z', '+00:00'), actor: create.actorName })).toEqual(ids(revoke));
    for (const wrong of [{ since: 'yesterday' }, { until: '2026-13-01T00:00:00Z' }, { outcome: 'fine' }])
      await expectError(found(wrong), 'INVALID_REQUEST');
    await expectError(found({ resource: { type: 'user', id: '' } }), 'INVALID_REQUEST');
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
