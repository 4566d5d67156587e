import { join } from 'node:path';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteLedger } from '../src/ledger/sqlite/ledger.ts';
import { harnessOf, RETENTION_MS, type LedgerHarness } from './ledger-harness.ts';

export async function sqliteHarness(): Promise<LedgerHarness> {
  const folder = temporaryFolder();
  return harnessOf(
    (clock) => openSqliteLedger(join(folder.path, 'credits.db'), { clock, retentionMs: RETENTION_MS }),
    folder.remove,
  );
}
