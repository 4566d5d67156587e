import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { readConfig } from 'platform/core/config.ts';
import type { RunAgentResponse } from 'proto/agents/v1/agents.ts';
import { config as declaration } from '../src/config.ts';
import { agents, agentVersions, openDefinitions } from '../src/definitions/store.ts';
import { applyAgent } from '../src/definitions/apply-agent.ts';
import { publishAgent } from '../src/definitions/publish-agent.ts';
import { makeVersionLoader } from '../src/definitions/versions.ts';
import type { Deps } from '../src/deps.ts';
import { openReleases } from '../src/executions/release.ts';
import { executionPayloads, executions, openExecutions, runKeys } from '../src/executions/store.ts';
import { runAgent } from '../src/executions/run-agent.ts';
import { reaper } from '../src/jobs/reaper.ts';
import { startRunnerPool } from '../src/runtimes/expression/runner-pool.ts';
import { creditsDouble } from './credits-double.ts';

/** Outward effects of a run, in their order. */
export const STEPS = ['record', 'reserve', 'evaluate', 'finish', 'settle', 'settled'] as const;
export type Step = (typeof STEPS)[number] | 'beat' | 'extend';
/** Called around each step; it may throw (the answer is lost) or never resolve (the process is dead). */
export type Probe = (step: Step, side: 'before' | 'after') => Promise<void> | void;

/** Several processes of the service on one real store and pool, with a clock that tests move. */
export async function openWorld({ leaseMs = 20_000, ttlMs = 60_000, credits = 100 } = {}) {
  const folder = temporaryFolder();
  const opened = await openSqliteStore(join(folder.path, 'agents.db'), [
    agents,
    agentVersions,
    executions,
    executionPayloads,
    runKeys,
    OUTBOX,
  ]);
  const log = makeLog('agents', 'silent');
  const runners = startRunnerPool({ size: 1, queueLimit: 100, log, recycleAfter: 1_000 });
  const time = { offset: 0 };
  const now = () => Date.now() + time.offset;
  const account = creditsDouble(credits * 1e6, now);
  const organizationId = newId();
  const config = readConfig(declaration, { RUN_LEASE_MS: String(leaseMs), RESERVATION_TTL_MS: String(ttlMs) });
  const platformStore = { ...opened.platformStore, now: async () => now() };
  const releases = openReleases({ ttlMs, log });
  const token = serverToken(organizationId);
  const context = (signal = new AbortController().signal) => ({
    principal: token,
    caller: 'gateway',
    requestId: newId(),
    signal,
    deadline: Date.now() + 60_000,
    log,
  });

  function process(probe: Probe = () => undefined): Deps {
    const around =
      <A extends unknown[], R>(step: Step, call: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        await probe(step, 'before');
        const result = await call(...args);
        await probe(step, 'after');
        return result;
      };
    const definitions = openDefinitions(opened.store);
    const records = openExecutions(opened.store, async () => now() + leaseMs);
    return {
      definitions,
      loadVersion: makeVersionLoader(definitions),
      platformStore,
      config,
      log,
      releases,
      clock: { now },
      instanceId: newId(),
      executions: {
        ...records,
        record: around('record', records.record),
        finish: around('finish', records.finish),
        settled: around('settled', records.settled),
        beat: around('beat', records.beat),
      },
      credits: {
        ...account.client,
        reserve: around('reserve', account.client.reserve),
        settle: around('settle', account.client.settle),
        extend: around('extend', account.client.extend),
      },
      runners: { ...runners, queued: 0, evaluate: around('evaluate', (evaluation) => runners.evaluate(evaluation)) },
    };
  }
  const healthy = process();

  return {
    organizationId,
    account: account.account,
    process,
    healthy,
    advance: (ms: number) => {
      time.offset += ms;
    },
    sweep: account.sweep,
    stateOf: account.stateOf,
    run: (deps: Deps, agentName: string, idempotencyKey?: string): Promise<RunAgentResponse> =>
      runAgent(deps, { agentName, args: '{}', idempotencyKey }, context()),
    reap: (deps = healthy) => reaper(deps).run(new AbortController().signal),
    records: () => platformStore.find(executions, {}),
    payloads: () => platformStore.count(executionPayloads, {}),
    keys: () => platformStore.count(runKeys, {}),
    async publish(definition: Record<string, unknown>) {
      await applyAgent(healthy, { definition: JSON.stringify(definition) }, context());
      await publishAgent(healthy, { name: definition.name as string }, context());
    },
    async close() {
      releases.stop();
      await runners.stop();
      await opened.close();
      folder.remove();
    },
  };
}
export type World = Awaited<ReturnType<typeof openWorld>>;

/** A probe under which the whole process, heartbeats too, stands still from one point on until `thaw`. `frozen` resolves when it got there. */
export function freezeAt(step: Step, side: 'before' | 'after') {
  const frozen = Promise.withResolvers<void>();
  const thawed = Promise.withResolvers<void>();
  let stands = false;
  const probe: Probe = async (atStep, atSide) => {
    stands ||= atStep === step && atSide === side;
    if (!stands) return;
    // what it had sent before is done by then
    setImmediate(() => setImmediate(frozen.resolve));
    await thawed.promise;
  };
  return { probe, frozen: frozen.promise, thaw: () => thawed.resolve() };
}
