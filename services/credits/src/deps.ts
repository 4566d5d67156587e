import type { EventBus } from 'platform/events/bus.ts';
import type { Start } from 'platform/run.ts';
import type { Config } from './config.ts';
import type { Ledger, OpenLedger, PlatformLedger } from './ledger/ledger.ts';
import { openSqliteLedger } from './ledger/ledger-sqlite.ts';

const DAY_MS = 86_400_000;

export interface Deps {
  ledger: Ledger;
  platformLedger: PlatformLedger;
  bus: EventBus;
  config: Config;
  closeLedger: OpenLedger['close'];
}

export async function openDeps({ config, clock, openStore, storeFile, openBus }: Start<Config>): Promise<Deps> {
  // The store holds the leases of the jobs and the lock of the file; the ledger's tables stand beside its own.
  await openStore([]);
  const { ledger, platformLedger, close } = await openSqliteLedger(storeFile, { clock, retentionMs: config.RETENTION_DAYS * DAY_MS });
  return { ledger, platformLedger, bus: await openBus(), config, closeLedger: close };
}
