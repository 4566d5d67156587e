import { join } from 'node:path';
import { temporaryFolder } from 'platform/testing.ts';
import { openSqliteLedger } from '../src/ledger/ledger-sqlite.ts';
import { RETENTION_MS, type LedgerHarness } from './harness.ts';

export async function sqliteHarness(): Promise<LedgerHarness> {
  const folder = temporaryFolder();
  let nowMs = Date.UTC(2026, 0, 1);
  const open = () => openSqliteLedger(join(folder.path, 'credits.db'), { clock: { now: () => nowMs }, retentionMs: RETENTION_MS });
  let opened = await open();
  return {
    get opened() { return opened; },
    nowMs: () => nowMs,
    advance: async (ms) => { nowMs += ms; },
    async reopen() {
      await opened.close();
      opened = await open();
    },
    async stop() {
      await opened.close();
      folder.remove();
    },
  };
}
