import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { verifyCopy } from 'platform/service/verify-copy.ts';
import { SERVICE_AUTHOR } from '../src/ledger/ledger.ts';
import { openSqliteLedger } from '../src/ledger/sqlite/ledger.ts';
import { program } from '../src/service.ts';

describe('a look at a copy of the ledger', () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'credits.db');
  const [first, second] = ['A', 'B'];
  beforeAll(async () => {
    const { ledger, close } = await openSqliteLedger(file, { clock: systemClock, retentionMs: 1e9 });
    for (const organizationId of [first, second]) {
      await ledger.grant(organizationId, { id: newId(), amountMicros: 100, note: '' }, SERVICE_AUTHOR);
      const [settled, open, released] = [newId(), newId(), newId()];
      for (const id of [settled, open, released])
        await ledger.reserve(organizationId, { id, amountMicros: 20, ttlMs: 60_000, maxOpen: 0 }, SERVICE_AUTHOR);
      await ledger.settle(organizationId, settled, 7, SERVICE_AUTHOR);
      await ledger.release(organizationId, released, SERVICE_AUTHOR);
    }
    await close();
  });
  afterAll(() => folder.remove());

  /** What is found after a change, which is undone then. */
  async function faultsAfter(sql: string): Promise<string[]> {
    const copy = join(folder.path, `${newId()}.db`);
    using db = new DatabaseSync(file);
    db.exec(`VACUUM INTO '${copy}'`);
    using changed = new DatabaseSync(copy);
    changed.exec(sql);
    return (await verifyCopy(copy, program.copy)).faults;
  }
  const broken = (row: number) => `Row ${row} of the ledger of the organization A does not follow from those before it`;
  const ACCOUNT = 'The account of the organization A is not what its ledger comes to';

  it('finds nothing wrong with a whole one, and says where its chains end', async () => {
    expect(await verifyCopy(file, program.copy)).toEqual({
      rows: expect.objectContaining({ ledgerAccounts: 2, ledgerReservations: 6, ledgerRows: 12 }),
      chains: { organizations: 2, links: 12, ends: expect.stringMatching(/^[0-9a-f]{64}$/) },
      masterKeys: [],
      faults: [],
    });
  });

  it.each([
    ['a row is removed', "DELETE FROM ledgerRows WHERE organizationId = 'A' AND sequence = 3", [broken(4), ACCOUNT]],
    ['the last row is removed', "DELETE FROM ledgerRows WHERE organizationId = 'A' AND sequence = 6", [ACCOUNT]],
    [
      'an amount is changed',
      "UPDATE ledgerRows SET availableMicros = 9 WHERE organizationId = 'A' AND sequence = 2",
      [broken(2)],
    ],
    [
      'an account is changed',
      "UPDATE ledgerAccounts SET spentMicros = 8, availableMicros = 72 WHERE organizationId = 'A'",
      [ACCOUNT],
    ],
    ['an account is removed', "DELETE FROM ledgerAccounts WHERE organizationId = 'A'", [ACCOUNT]],
    [
      'an open reservation is removed',
      "DELETE FROM ledgerReservations WHERE organizationId = 'A' AND state = 'OPEN'",
      [ACCOUNT],
    ],
  ])('finds that %s', async (_, sql, faults) => {
    expect(await faultsAfter(sql)).toEqual(faults);
  });
});
