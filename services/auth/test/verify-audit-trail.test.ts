import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { AuditEntry, AuditFault, AuditPlace, VerifyAuditTrailResponse } from 'proto/auth/v1/auth.ts';
import { DAY_MS } from 'platform/core/clock.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('VerifyAuditTrail', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  /** A new organization with at least `count` entries, oldest first. */
  async function trailOf(count: number): Promise<{ organizationId: string; entries: AuditEntry[] }> {
    const organizationId = await fixture.createOrganization();
    for (let n = 1; n < count; n++) await fixture.createUser(organizationId, []);
    await fixture.auditTrail(organizationId, (actions) => actions.length === count);
    const request = { pageSize: 0, afterSequence: 0, afterId: '' };
    const { entries } = await fixture.auth.exportAuditEntries(request, fixture.asOperator(organizationId));
    return { organizationId, entries };
  }
  async function verify(
    organizationId: string,
    { pageSize = 2, noted }: { pageSize?: number; noted?: AuditPlace } = {},
  ) {
    const faults: AuditFault[] = [];
    for (let after: AuditPlace | undefined, entries = 0, unchained = 0; ;) {
      const page: VerifyAuditTrailResponse = await fixture.auth.verifyAuditTrail(
        { pageSize, after, noted },
        fixture.asOperator(organizationId),
      );
      faults.push(...page.faults);
      entries += page.entries;
      unchained += page.unchained;
      after = page.last;
      if (!page.hasMore) return { faults, entries, head: page.head!, start: page.start!, unchained };
    }
  }
  /** Changes the database behind the back of auth. */
  function tamper(sql: string, ...values: SQLInputValue[]): void {
    using db = new DatabaseSync(join(fixture.running.folder, 'auth.db'), { timeout: 10_000 });
    expect(db.prepare(sql).run(...values).changes).toBeGreaterThan(0);
  }
  const placeOf = ({ sequence, hash }: AuditEntry): AuditPlace => ({ sequence: sequence!, hash: hash! });

  it('finds no fault in a trail that nobody has changed, and shows its head', async () => {
    const { organizationId, entries } = await trailOf(5);
    expect(entries.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
    const head = placeOf(entries[4]!);
    for (const pageSize of [1, 2, 5, 100])
      expect(await verify(organizationId, { pageSize })).toEqual({
        ...{ faults: [], entries: 5, head, start: { sequence: 0, hash: '' }, unchained: 0 },
      });
    for (const entry of entries) expect((await verify(organizationId, { noted: placeOf(entry) })).faults).toEqual([]);
    expect(await verify(await fixture.createOrganization())).toMatchObject({ faults: [] });
  });

  it.each<[string, string, (entries: AuditEntry[]) => SQLInputValue[], object[]]>([
    [
      'changed',
      'UPDATE audit_entries SET "actorName" = \'nobody\' WHERE hash = ?',
      (entries) => [entries[2]!.hash!],
      [{ kind: 'changed', sequence: 3 }],
    ],
    [
      'removed',
      'DELETE FROM audit_entries WHERE hash IN (?, ?)',
      (entries) => [entries[2]!.hash!, entries[3]!.hash!],
      [{ kind: 'removed', sequence: 3, through: 4 }],
    ],
    [
      'removed from the beginning',
      'DELETE FROM audit_entries WHERE hash = ?',
      (entries) => [entries[0]!.hash!],
      [{ kind: 'removed', sequence: 1, through: 1 }],
    ],
    [
      'removed from the end',
      'DELETE FROM audit_entries WHERE hash IN (?, ?)',
      (entries) => [entries[4]!.hash!, entries[5]!.hash!],
      [{ kind: 'removed', sequence: 5, through: 6 }],
    ],
    [
      'reordered',
      'UPDATE audit_entries SET sequence = 7 - sequence WHERE hash IN (?, ?)',
      (entries) => [entries[2]!.hash!, entries[3]!.hash!],
      [3, 4, 5].map((sequence) => ({ kind: 'moved', sequence })),
    ],
    [
      'added',
      'UPDATE audit_entries SET sequence = 9 WHERE hash = ?',
      (entries) => [entries[5]!.hash!],
      [
        { kind: 'added', sequence: 9 },
        { kind: 'removed', sequence: 6, through: 6 },
      ],
    ],
  ])('names what was %s', async (_what, sql, values, expected) => {
    const { organizationId, entries } = await trailOf(6);
    tamper(sql, ...values(entries));
    for (const pageSize of [1, 2, 100]) {
      const { faults } = await verify(organizationId, { pageSize });
      expect(faults).toHaveLength(expected.length);
      expect(faults).toEqual(expect.arrayContaining(expected.map((fault) => expect.objectContaining(fault))));
    }
  });

  it('misses the end of a trail that was cut off with its head when somebody has noted the head', async () => {
    const { organizationId, entries } = await trailOf(5);
    const noted = placeOf(entries[4]!);
    const end = entries[3]!;
    tamper('DELETE FROM audit_entries WHERE hash = ?', noted.hash);
    tamper('UPDATE audit_heads SET sequence = ?, hash = ? WHERE hash = ?', end.sequence!, end.hash!, noted.hash);
    expect((await verify(organizationId)).faults).toEqual([]);
    for (const pageSize of [2, 4, 100])
      expect((await verify(organizationId, { pageSize, noted })).faults).toMatchObject([
        { kind: 'noted', sequence: 5 },
      ]);
    const other = { ...placeOf(entries[1]!), hash: noted.hash };
    for (const pageSize of [1, 2, 3])
      expect((await verify(organizationId, { pageSize, noted: other })).faults).toMatchObject([
        { kind: 'noted', sequence: 2 },
      ]);
  });

  it('starts after what was removed after its retention, and checks nothing of a release without chains', async () => {
    const { organizationId, entries } = await trailOf(4);
    tamper(
      'UPDATE audit_entries SET sequence = NULL, "previousHash" = NULL, hash = NULL WHERE hash = ?',
      entries[0]!.hash!,
    );
    tamper(
      'UPDATE audit_heads SET "startSequence" = 1, "startHash" = ? WHERE hash = ?',
      ...[entries[0]!.hash!, entries[3]!.hash!],
    );
    expect(await verify(organizationId)).toMatchObject({ faults: [], entries: 3, unchained: 1 });
    fixture.clock.advance(400 * DAY_MS);
    await fixture.createUser(organizationId, []);
    await fixture.auditTrail(organizationId, (actions) => actions.length === 5);
    fixture.clock.advance(1);
    await fixture.running.runJob('audit-retention');
    const noted = placeOf(entries[3]!);
    expect(await verify(organizationId, { noted })).toMatchObject({
      ...{ faults: [], entries: 1, start: noted, unchained: 0 },
    });
    expect((await verify(organizationId, { noted: { ...noted, hash: '' } })).faults).toHaveLength(1);
  });

  it('rejects a page size that is none', async () => {
    await expectError(
      fixture.auth.verifyAuditTrail({ pageSize: -1 }, fixture.asOperator(await fixture.createOrganization())),
      'INVALID_REQUEST',
    );
  });
});
