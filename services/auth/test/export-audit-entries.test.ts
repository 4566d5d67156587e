import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('ExportAuditEntries', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('returns the entries of one organization in the order of the chain, in pages, the oldest release first', async () => {
    const organizationId = await fixture.createOrganization();
    await fixture.createOrganization();
    for (let n = 1; n < 6; n++) await fixture.createUser(organizationId, []);
    const trail = (await fixture.auditTrail(organizationId, (actions) => actions.length === 6)).reverse();
    const page = async (pageSize: number, afterSequence: number, afterId = '') =>
      (await fixture.auth.exportAuditEntries({ pageSize, afterSequence, afterId }, fixture.asOperator(organizationId)))
        .entries;
    expect(await page(0, 0)).toEqual(trail);
    expect(await page(2, 0)).toEqual(trail.slice(0, 2));
    expect(await page(2, 3)).toEqual(trail.slice(3, 5));
    expect(await page(2, 6)).toEqual([]);
    expect(trail.map(({ previousHash }) => previousHash)).toEqual(['', ...trail.slice(0, -1).map(({ hash }) => hash)]);

    // As if a release without chains had written the first two.
    using db = new DatabaseSync(join(fixture.running.folder, 'auth.db'), { timeout: 10_000 });
    const forget = db.prepare('UPDATE audit_entries SET sequence = NULL WHERE hash IN (?, ?)');
    expect(forget.run(trail[0]!.hash!, trail[1]!.hash!).changes).toBe(2);
    const ids = async (...given: Parameters<typeof page>) => (await page(...given)).map(({ id }) => id);
    const all = trail.map(({ id }) => id);
    expect(await ids(3, 0)).toEqual(all.slice(0, 3));
    expect(await ids(3, 0, all[0])).toEqual(all.slice(1, 4));
    expect(await ids(3, 0, all[1])).toEqual(all.slice(2, 5));
    expect(await ids(3, 3)).toEqual(all.slice(3, 6));
    await expectError(page(-1, 0), 'INVALID_REQUEST');
    await expectError(page(1, -1), 'INVALID_REQUEST');
    await expectError(page(1, 0, 'x'), 'INVALID_REQUEST');
  });
});
