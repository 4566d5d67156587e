import { withLedger, RETENTION_MS } from './ledger-harness.ts';
import { ledgerProperties } from './ledger-properties.ts';
import { ledgerSuite } from './ledger-suite.ts';
import { ledgerSuiteTime } from './ledger-suite-time.ts';
import { sqliteHarness } from './sqlite-harness.ts';

describe('the ledger on SQLite', () => {
  const context = withLedger(sqliteHarness);
  ledgerSuite(context);
  ledgerSuiteTime(context);
});
describe('the ledger on SQLite: what only this engine does', () => {
  const context = withLedger(sqliteHarness);
  it('deletes only ended reservations and tombstones past the window, in bounded batches', async () => {
    const { harness, organization } = context;
    const deleteEnded = (limit: number) => harness.opened.platformLedger.deleteEnded(limit);
    const [settled, expired, tombstone, open] = Array.from({ length: 4 }, () =>
      organization.freshId(RETENTION_MS - 1_000),
    ) as [string, string, string, string];
    const young = organization.freshId(RETENTION_MS - 1_001);
    for (const id of [settled, young]) {
      await organization.reserve(id, 10);
      await organization.settle(id, 10);
    }
    await organization.reserve(expired, 10, { ttlMs: 1_000 });
    await organization.release(tombstone);
    await organization.reserve(open, 10);
    await harness.advance(1_000);
    await organization.expire();
    expect(await deleteEnded(1_000)).toBe(0);
    await harness.advance(1);
    expect([await deleteEnded(2), await deleteEnded(2), await deleteEnded(2)]).toEqual([2, 1, 0]);
    await organization.settle(open, 10);
    expect(await deleteEnded(1_000)).toBe(1);
  });
  it('rejects a rebuild, because there is nothing to rebuild', async () => {
    await expect(context.harness.opened.ledger.rebuild(context.organization.organizationId)).rejects.toMatchObject({
      reason: 'NOT_SUPPORTED',
    });
  });
});
describe('the ledger on SQLite under random commands', () => ledgerProperties(sqliteHarness));
