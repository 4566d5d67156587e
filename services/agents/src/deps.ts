import type { Clock } from 'platform/core/clock.ts';
import { fairScheduler, type FairScheduler } from 'platform/core/fair-scheduler.ts';
import { keyedMutex, type KeyedMutex } from 'platform/core/keyed-mutex.ts';
import type { Log } from 'platform/core/log.ts';
import { openCounterShards, type CounterShards } from 'platform/jobs/counter-shards.ts';
import { openSealing, type Sealing } from 'platform/core/sealing.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import type { Start } from 'platform/service/program.ts';
import { StartError } from 'platform/core/start-error.ts';
import type { PlatformStore } from 'platform/store/store.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { MemoryServiceService } from 'proto/memory/v1/memory.ts';
import { CALLBACK_TOKENS, openCallbackTokens, type CallbackTokens } from './callback-tokens/store.ts';
import type { Config } from './config.ts';
import { AGENTS, AGENT_VERSIONS, openDefinitions, type Definitions } from './definitions/store.ts';
import { makeVersionLoader, type LoadVersion } from './definitions/version-loader.ts';
import { EXECUTIONS, EXECUTION_PAYLOADS, openExecutions, RUN_KEYS, type Executions } from './executions/store.ts';
import { countRuns, type CountedRuns } from './executions/metrics.ts';
import { makeHeartbeats, type Heartbeats } from './executions/heartbeats.ts';
import type { Auth } from './executions/stopped-actors.ts';
import { openReleases, type Credits, type Releases } from './executions/releases.ts';
import { makeSettledRuns, type SettledRuns } from './executions/settled-runs.ts';
import { openSecrets, SECRETS, type Secrets } from './secrets/store.ts';
import type { Memory } from './tools/memory-operations.ts';
import { openUsage, USAGE, type Usage } from './usage/store.ts';
import { openRuntimes, type Runtimes } from './runtimes/runtimes.ts';

export interface Deps {
  definitions: Definitions;
  loadVersion: LoadVersion;
  secrets: Secrets;
  callbackTokens: CallbackTokens;
  /** For the tools of agents. */
  memory: Memory;
  /** Of the secrets. */
  sealing: Sealing;
  executions: Executions;
  usage: Usage;
  counterShards: CounterShards;
  credits: Credits;
  /** Knows whose runs must not go on. */
  auth: Auth;
  releases: Releases;
  heartbeats: Heartbeats;
  settledRuns: SettledRuns;
  countedRuns: CountedRuns;
  runtimes: Runtimes;
  /** Runs what parses, hashes or checks texts of clients and of runners: organizations take turns. */
  schedule: FairScheduler;
  /** Puts uses of one callback token in this process in turn, so that they do not conflict. */
  mutex: KeyedMutex;
  platformStore: PlatformStore;
  clock: Clock;
  config: Config;
  /** Identifies this process as the owner of its runs. */
  instanceId: string;
  log: Log;
}

/** All that it stores. */
export const COLLECTIONS = [
  ...[AGENTS, AGENT_VERSIONS, EXECUTIONS, EXECUTION_PAYLOADS, RUN_KEYS],
  ...[CALLBACK_TOKENS, SECRETS, USAGE],
];

export async function openDeps(start: Start<Config>): Promise<Deps> {
  const { config, clock, log, instanceId, metrics, openStore, connect } = start;
  if (config.RESERVATION_TTL_MS <= config.RUN_LEASE_MS)
    throw new StartError('RESERVATION_TTL_MS must be longer than RUN_LEASE_MS');
  if (config.RUNNERS_MAX < config.RUNNERS)
    throw new StartError(
      `RUNNERS_MAX (${config.RUNNERS_MAX}) must not be less than RUNNERS (${config.RUNNERS}); set both`,
    );
  const sealing = openSealing(config.MASTER_KEY_FILE || masterKeyFileOf(keyFolderOf(config.DATA_DIR)), { clock, log });
  const { store, platformStore, counterShards: shardCount } = await openStore(COLLECTIONS);
  const counterShards = await openCounterShards(
    { counterShards: shardCount, platformStore },
    { owner: instanceId, leaseMs: config.LEASE_MS, log },
  );
  const definitions = openDefinitions(store);
  const schedule = fairScheduler();
  const secrets = openSecrets(store, sealing);
  const runtimes = openRuntimes({ config, log, schedule, clock, secrets });
  const releases = openReleases({ ttlMs: config.RESERVATION_TTL_MS, log });
  const usage = openUsage(store, counterShards, () => runtimes.waiting);
  return {
    definitions,
    loadVersion: makeVersionLoader(definitions, { schedule, cacheBytes: config.VERSION_CACHE_BYTES }),
    secrets,
    callbackTokens: openCallbackTokens(store, platformStore, clock),
    memory: connect(MemoryServiceService, 'memory'),
    sealing,
    executions: openExecutions(store, usage, async () => (await platformStore.now()) + config.RUN_LEASE_MS),
    usage,
    counterShards,
    credits: connect(CreditsServiceService, 'credits'),
    auth: connect(AuthServiceService, 'auth'),
    releases,
    heartbeats: makeHeartbeats(config.RUN_LEASE_MS),
    settledRuns: makeSettledRuns(),
    countedRuns: countRuns(metrics, { runtimes, releases }),
    runtimes,
    schedule,
    mutex: keyedMutex(),
    platformStore,
    clock,
    config,
    instanceId,
    log,
  };
}
