import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import type { Program } from 'platform/service/program.ts';
import { bind } from 'platform/rpc/call.ts';
import { getBalance } from './accounts/get-balance.ts';
import { grant } from './accounts/grant.ts';
import { rebuildLedger } from './accounts/rebuild-ledger.ts';
import { config } from './config.ts';
import { openDeps, type Deps } from './deps.ts';
import { mirrorJob } from './jobs/mirror.ts';
import { relayJob } from './jobs/relay.ts';
import { sweeperJob } from './jobs/sweeper.ts';
import { ledgerChecks } from './ledger/checks.ts';
import { LEDGER_METRICS } from './ledger/metrics.ts';
import { listLedgerRows } from './ledger/list-ledger-rows.ts';
import { verifyLedger } from './ledger/sqlite/verify-ledger.ts';
import { extend } from './reservations/extend.ts';
import { release } from './reservations/release.ts';
import { reserve } from './reservations/reserve.ts';
import { settle } from './reservations/settle.ts';

export const program: Program<typeof config, Deps> = {
  name: 'credits',
  config,
  calls: [],
  publishes: ['credits.ledger.v1', 'audit.v1'],
  // the rows of the ledger are its outbox
  outbox: 'own',
  metrics: LEDGER_METRICS,
  openDeps,
  services: (deps) => [
    bind(CreditsServiceService, deps, {
      grant,
      getBalance,
      reserve,
      extend,
      settle,
      release,
      listLedgerRows,
      rebuildLedger,
    }),
  ],
  jobs: (deps) => [relayJob(deps), sweeperJob(deps), ...(deps.mirroring ? [mirrorJob(deps.mirroring, deps)] : [])],
  checks: ledgerChecks,
  // The tables of the ledger are no collections of the store.
  copy: { collections: [], chains: async (file) => verifyLedger(file) },
  close: (deps) => deps.closeLedger(),
};
