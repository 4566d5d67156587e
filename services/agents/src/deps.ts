import type { ServiceClient } from 'platform/rpc/call.ts';
import type { Clock } from 'platform/core/clock.ts';
import type { ConfigOf } from 'platform/core/config.ts';
import type { Log } from 'platform/core/log.ts';
import type { Start } from 'platform/service/program.ts';
import { StartError } from 'platform/core/start-error.ts';
import type { PlatformStore } from 'platform/store/store.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import type { config } from './config.ts';
import { agents, agentVersions, openDefinitions, type Definitions } from './definitions/store.ts';
import { makeVersionLoader, type LoadVersion } from './definitions/versions.ts';
import { executionPayloads, executions, openExecutions, runKeys, type Executions } from './executions/store.ts';
import { openReleases, type Releases } from './executions/release.ts';
import { startRunnerPool, type RunnerPool } from './runtimes/expression/runner-pool.ts';

export type Config = ConfigOf<typeof config>;

export interface Deps {
  definitions: Definitions;
  loadVersion: LoadVersion;
  executions: Executions;
  credits: Pick<ServiceClient<typeof CreditsServiceService>, 'reserve' | 'extend' | 'settle' | 'release'>;
  releases: Releases;
  runners: RunnerPool;
  platformStore: PlatformStore;
  clock: Clock;
  config: Config;
  /** Owner of the leases of this process's runs. */
  instanceId: string;
  log: Log;
}

export async function openDeps({ config, clock, log, instanceId, openStore, connect }: Start<Config>): Promise<Deps> {
  if (config.RESERVATION_TTL_MS <= config.RUN_LEASE_MS)
    throw new StartError('RESERVATION_TTL_MS must be longer than RUN_LEASE_MS');
  const { store, platformStore } = await openStore([agents, agentVersions, executions, executionPayloads, runKeys]);
  const definitions = openDefinitions(store);
  return {
    definitions,
    loadVersion: makeVersionLoader(definitions),
    executions: openExecutions(store, async () => (await platformStore.now()) + config.RUN_LEASE_MS),
    credits: connect(CreditsServiceService, 'credits'),
    releases: openReleases({ ttlMs: config.RESERVATION_TTL_MS, log }),
    runners: startRunnerPool({
      size: config.RUNNERS,
      queueLimit: config.RUN_QUEUE_LIMIT,
      log,
      recycleAfter: config.RUNNER_RECYCLE_AFTER,
    }),
    platformStore,
    clock,
    config,
    instanceId,
    log,
  };
}
