import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { keyedMutex } from 'platform/core/keyed-mutex.ts';
import { makeLog } from 'platform/core/log.ts';
import { NO_METRICS } from 'platform/telemetry/metrics.ts';
import { openCounterShards } from 'platform/jobs/counter-shards.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import type { Op, Store } from 'platform/store/store.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { readConfig } from 'platform/core/config.ts';
import type { RunAgentResponse } from 'proto/agents/v1/agents.ts';
import type { RunActor } from 'proto/auth/v1/auth.ts';
import { config as declaration } from '../src/config.ts';
import { openDefinitions } from '../src/definitions/store.ts';
import { applyAgent } from '../src/definitions/apply-agent.ts';
import { publishAgent } from '../src/definitions/publish-agent.ts';
import { fairScheduler, type FairScheduler } from 'platform/core/fair-scheduler.ts';
import { makeVersionLoader } from '../src/definitions/version-loader.ts';
import { COLLECTIONS, type Deps } from '../src/deps.ts';
import { countRuns } from '../src/executions/metrics.ts';
import { makeHeartbeats } from '../src/executions/heartbeats.ts';
import { openReleases } from '../src/executions/releases.ts';
import { makeSettledRuns } from '../src/executions/settled-runs.ts';
import { EXECUTION_PAYLOADS, EXECUTIONS, openExecutions, RUN_KEYS } from '../src/executions/store.ts';
import { runAgent } from '../src/executions/run-agent.ts';
import { reaperJob } from '../src/jobs/reaper.ts';
import { markSettled } from '../src/jobs/settled.ts';
import { openCallbackTokens } from '../src/callback-tokens/store.ts';
import { openSecrets } from '../src/secrets/store.ts';
import { openUsage } from '../src/usage/store.ts';
import { NO_SEALING } from './no-sealing.ts';
import { SECRET, testRuntimes } from './runtimes/test-runtimes.ts';
import type { RunRequest } from '../src/runtimes/runtime.ts';
import type { Runtimes } from '../src/runtimes/runtimes.ts';
import { startRunnerPool, type RunnerPool } from '../src/runtimes/runners/runner-pool.ts';
import type { Memory } from '../src/tools/memory-operations.ts';
import { memoryDouble } from './memory-double.ts';
import { creditsDouble } from './credits-double.ts';

/** The calls by which a run has effects outside its process, in their order. */
export const STEPS = ['create', 'reserve', 'evaluate', 'finish', 'settle'] as const;
/** The writes of the reaper, which also settles and releases. */
export const REAPER_STEPS = ['takeOver', 'leaseSettlement', 'settle', 'release'] as const;
/** With heartbeats, what takes a run back, and the calls of its tools. */
export type Step =
  | (typeof STEPS)[number]
  | (typeof REAPER_STEPS)[number]
  | ('extendLease' | 'extend' | 'withdraw' | 'issueToken' | 'tool');
/** Called before and after each step. It may throw (the answer is lost) or never resolve (the process is dead). */
export type Probe = (step: Step, side: 'before' | 'after') => Promise<void> | void;

/** Calls the probe of a process before and after each call. */
type Around = <A extends unknown[], R>(step: Step, call: (...args: A) => Promise<R>) => (...args: A) => Promise<R>;

const LOG = makeLog('agents', 'silent');

/** @param program what a runner executes instead of its own program */
export const startSimulatedRunners = (size: number, program?: string): RunnerPool =>
  startRunnerPool({
    size,
    queueLimit: 100,
    log: LOG,
    schedule: fairScheduler(),
    recycleAfter: 1_000,
    program,
  });

/**
 * Simulates processes of the service within the test's process: they share one real store and one runner pool, and a
 * clock that the test moves. Each has its own probe.
 * @param options.granted credits granted to the organization
 * @param options.program what a runner executes instead of its own program
 * @param options.runners runner processes; a frozen process holds one as long as its run is evaluated
 * @param options.pool runners of the whole test file, in place of own ones, which the caller stops
 */
export async function simulateProcesses({
  leaseMs = 20_000,
  ttlMs = 60_000,
  granted = 100,
  program,
  runners: size = 1,
  pool,
}: {
  leaseMs?: number;
  ttlMs?: number;
  granted?: number;
  program?: string;
  runners?: number;
  pool?: RunnerPool;
} = {}) {
  const folder = temporaryFolder();
  const opened = await openSqliteStore(join(folder.path, 'agents.db'), [...COLLECTIONS, OUTBOX]);
  const batches: (readonly Op[])[] = [];
  const noting =
    <A extends unknown[]>(apply: (...args: A) => Promise<void>) =>
    (...args: A): Promise<void> => {
      batches.push(args.at(-1) as readonly Op[]);
      return apply(...args);
    };
  const store: Store = { ...opened.store, apply: noting(opened.store.apply) };
  const counterShards = await openCounterShards(opened, { owner: newId(), leaseMs: 60_000, log: LOG });
  const usage = openUsage(store, counterShards, () => runners.queued);
  const runners = pool ?? startSimulatedRunners(size, program);
  const time = { offset: 0 };
  const auth = { asked: 0, isDown: false, stopped: new Set<string>() };
  const now = () => Date.now() + time.offset;
  const credits = creditsDouble(granted * 1e6, now);
  const memory = memoryDouble();
  const organizationId = newId();
  const config = readConfig(declaration, { RUN_LEASE_MS: String(leaseMs), RESERVATION_TTL_MS: String(ttlMs) });
  const platformStore = { ...opened.platformStore, apply: noting(opened.platformStore.apply), now: async () => now() };
  const releases = openReleases({ ttlMs, log: LOG });
  // No run of these tests has a secret.
  const secrets = openSecrets(store, NO_SEALING);
  const token = serverToken(organizationId);
  const context = (signal = new AbortController().signal) => ({
    principal: token,
    caller: 'gateway',
    requestId: newId(),
    signal,
    deadline: Date.now() + 60_000,
    log: LOG,
  });

  const runtimes = testRuntimes(runners, { secretValues: () => Promise.resolve([SECRET]) });
  const probedRuntimes = (around: Around): Runtimes['byType'] =>
    Object.fromEntries(
      Object.entries(runtimes.byType).map(([type, runtime]) => [
        type,
        { ...runtime, run: around('evaluate', (request: RunRequest) => runtime.run(request)) },
      ]),
    );

  function process(probe: Probe = () => undefined, schedule: FairScheduler = fairScheduler()): Deps {
    const around: Around =
      (step, call) =>
      async (...args) => {
        await probe(step, 'before');
        const result = await call(...args);
        await probe(step, 'after');
        return result;
      };
    const definitions = openDefinitions(store);
    const records = openExecutions(store, usage, async () => now() + leaseMs);
    const callbackTokens = openCallbackTokens(store, platformStore, { now });
    return {
      definitions,
      loadVersion: makeVersionLoader(definitions, { schedule, cacheBytes: 1e8 }),
      schedule,
      mutex: keyedMutex(),
      platformStore,
      usage,
      counterShards,
      config,
      log: LOG,
      releases,
      heartbeats: makeHeartbeats(leaseMs),
      auth: {
        async findStoppedActors({ actors }) {
          auth.asked += 1;
          if (auth.isDown) throw new Error('auth is down');
          const isStopped = ({ organizationId: of, serverTokenId }: RunActor): boolean =>
            auth.stopped.has(of) || auth.stopped.has(serverTokenId);
          return { stopped: actors.filter(isStopped) };
        },
      },
      settledRuns: makeSettledRuns(),
      clock: { now },
      instanceId: newId(),
      executions: {
        ...records,
        create: around('create', records.create),
        finish: around('finish', records.finish),
        extendLease: around('extendLease', records.extendLease),
        withdraw: around('withdraw', records.withdraw),
        takeOver: around('takeOver', records.takeOver),
        leaseSettlement: around('leaseSettlement', records.leaseSettlement),
      },
      credits: {
        ...credits.client,
        reserve: around('reserve', credits.client.reserve),
        settle: around('settle', credits.client.settle),
        extend: around('extend', credits.client.extend),
        release: around('release', credits.client.release),
      },
      secrets,
      callbackTokens: { ...callbackTokens, issue: around('issueToken', callbackTokens.issue) },
      memory: Object.fromEntries(
        Object.entries(memory.client).map(([name, call]) => [name, around('tool', call as () => Promise<never>)]),
      ) as unknown as Memory,
      sealing: NO_SEALING,
      runtimes: { ...runtimes, byType: probedRuntimes(around), waiting: 0, stop: () => Promise.resolve() },
      countedRuns: countRuns(NO_METRICS, { runtimes, releases }),
    };
  }
  const healthy = process();
  const runs = new Set<Promise<unknown>>();
  const frozen: { thaw(): void }[] = [];

  return {
    organizationId,
    /** `stopped`: the organizations and tokens whose runs must end. */
    auth,
    account: credits.account,
    process,
    healthy,
    context,
    advance: (ms: number) => {
      time.offset += ms;
    },
    sweep: credits.sweep,
    stateOf: credits.stateOf,
    chargesOf: credits.chargesOf,
    run(deps: Deps, agentName: string, idempotencyKey?: string, args = '{}'): Promise<RunAgentResponse> {
      const run = runAgent(deps, { agentName, args, idempotencyKey }, context());
      runs.add(run);
      return run;
    },
    store,
    /** All batches that were given to the store. */
    batches,
    /** @param nth which of several calls; the first is 1 */
    freezeAt(step: Step, side: 'before' | 'after', nth = 1) {
      const freeze = freezeAt(step, side, nth);
      frozen.push(freeze);
      return freeze;
    },
    reap: (deps = healthy) => reaperJob(deps).run(new AbortController().signal),
    /** A round of the job that marks settled runs, in one process. */
    markSettled: (deps = healthy) => markSettled(deps),
    records: () => platformStore.find(EXECUTIONS, {}),
    allPayloads: () => platformStore.find(EXECUTION_PAYLOADS, {}),
    payloads: () => platformStore.count(EXECUTION_PAYLOADS, {}),
    keys: () => platformStore.count(RUN_KEYS, {}),
    events: async () => (await platformStore.find(OUTBOX, {})).map(({ event }) => JSON.parse(event) as CloudEvent),
    async publish(definition: Record<string, unknown>) {
      await applyAgent(healthy, { definition: JSON.stringify(definition) }, context());
      await publishAgent(healthy, { name: definition.name as string }, context());
    },
    /** Lets frozen processes continue, and waits for all runs. */
    close: closedInTheEnd(async () => {
      for (const { thaw } of frozen) thaw();
      if (!pool) await runtimes.stop();
      await Promise.allSettled(runs);
      releases.stop();
      await opened.close();
      folder.remove();
    }),
  };
}
export type Simulation = Awaited<ReturnType<typeof simulateProcesses>>;

/**
 * A probe that freezes a whole process, heartbeats included, from one point on until `thaw`. `frozen` resolves when the
 * process has reached that point.
 */
function freezeAt(step: Step, side: 'before' | 'after', nth: number) {
  const frozen = Promise.withResolvers<void>();
  const thawed = Promise.withResolvers<void>();
  let isFrozen = false;
  let left = nth;
  const probe: Probe = async (atStep, atSide) => {
    if (atStep === step && atSide === side) isFrozen ||= --left === 0;
    if (!isFrozen) return;
    // Calls that the process made before are done by then.
    setImmediate(() => setImmediate(frozen.resolve));
    await thawed.promise;
  };
  return { probe, frozen: frozen.promise, thaw: () => thawed.resolve() };
}
