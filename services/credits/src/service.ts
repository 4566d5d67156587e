import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import type { Program } from 'platform/service/run.ts';
import { served } from 'platform/rpc/server.ts';
import { getBalance } from './accounts/get-balance.ts';
import { grant } from './accounts/grant.ts';
import { rebuildLedger } from './accounts/rebuild-ledger.ts';
import { config } from './config.ts';
import { openDeps, type Deps } from './deps.ts';
import { mirrorLedgerJob } from './jobs/mirror-ledger.ts';
import { relayLedgerJob } from './jobs/relay-ledger.ts';
import { sweeperJob } from './jobs/sweeper.ts';
import { listLedgerRows } from './ledger/list-ledger-rows.ts';
import { extend } from './reservations/extend.ts';
import { release } from './reservations/release.ts';
import { reserve } from './reservations/reserve.ts';
import { settle } from './reservations/settle.ts';

export const program: Program<typeof config, Deps> = {
  name: 'credits',
  config,
  calls: [],
  openDeps,
  services: (deps) => [
    served(CreditsServiceService, {
      grant: (request, context) => grant(deps, request, context),
      getBalance: (request, context) => getBalance(deps, request, context),
      reserve: (request, context) => reserve(deps, request, context),
      extend: (request, context) => extend(deps, request, context),
      settle: (request, context) => settle(deps, request, context),
      release: (request, context) => release(deps, request, context),
      listLedgerRows: (request, context) => listLedgerRows(deps, request, context),
      rebuildLedger: (request, context) => rebuildLedger(deps, request, context),
    }),
  ],
  jobs: (deps) => [
    relayLedgerJob(deps),
    sweeperJob(deps),
    ...(deps.mirroring ? [mirrorLedgerJob(deps.mirroring, deps)] : []),
  ],
  close: (deps) => deps.closeLedger(),
};
