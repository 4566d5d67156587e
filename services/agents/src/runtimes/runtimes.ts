import { isoTime, type Clock } from 'platform/core/clock.ts';
import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import type { Config } from '../config.ts';
import type { Secrets } from '../secrets/store.ts';
import { expressionRuntime } from './expression/runtime.ts';
import { httpRuntime, type HttpNeeds } from './http/runtime.ts';
import { llmRuntime, type LlmNeeds } from './llm/runtime.ts';
import { makeLookupTurns } from './network/lookup-in-turn.ts';
import { makePoster } from './network/post.ts';
import { startRunnerPool, type RunnerPool } from './runners/runner-pool.ts';
import type { Runtime } from './runtime.ts';
import { scriptRuntime } from './script/runtime.ts';
import { makeTurns } from './network/turns.ts';

/** Every runtime, by the name that definitions give in `/runtime/type`. */
export interface Runtimes {
  byType: Readonly<Record<string, Runtime>>;
  /** Runs that wait for their turn. */
  readonly waiting: number;
  /** The same by what they wait for. */
  readonly queues: Readonly<Record<string, number>>;
  readonly runners: RunnerPool['state'];
  /** Ends all runs of all runtimes. */
  stop(): Promise<void>;
}

export function openRuntimes({
  config,
  log,
  schedule,
  clock,
  secrets,
}: {
  config: Pick<
    Config,
    | 'RUNNERS'
    | 'RUNNERS_MAX'
    | 'RUNNER_IDLE_MS'
    | 'RUN_QUEUE_LIMIT'
    | 'RUNNER_RECYCLE_AFTER'
    | 'HTTP_RUNS_AT_ONCE'
    | 'LLM_RUNS_AT_ONCE'
    | 'AGENT_NETWORKS'
  >;
  log: Log;
  schedule: FairScheduler;
  clock: Clock;
  secrets: Pick<Secrets, 'values'>;
}): Runtimes {
  const networks = config.AGENT_NETWORKS === '' ? [] : config.AGENT_NETWORKS.split(',');
  const runners = startRunnerPool({
    size: config.RUNNERS,
    maxSize: config.RUNNERS_MAX,
    idleMs: config.RUNNER_IDLE_MS,
    queueLimit: config.RUN_QUEUE_LIMIT,
    recycleAfter: config.RUNNER_RECYCLE_AFTER,
    log,
    schedule,
  });
  const lookupTurns = makeLookupTurns();
  const onNetwork = (size: number) => ({
    poster: makePoster(networks, lookupTurns),
    turns: makeTurns({ size, limit: config.RUN_QUEUE_LIMIT }),
    secretValues: (organizationId: string, name: string) => secrets.values(organizationId, name, isoTime(clock.now())),
    ...{ schedule, networks },
  });
  return runtimesOf({
    ...{ runners, schedule },
    http: { ...onNetwork(config.HTTP_RUNS_AT_ONCE), clock },
    llm: onNetwork(config.LLM_RUNS_AT_ONCE),
  });
}

/** @param needs.runners evaluate the runs of the runtimes that need no network */
export function runtimesOf({
  runners,
  schedule,
  http,
  llm,
}: {
  runners: RunnerPool;
  schedule: FairScheduler;
  http: HttpNeeds;
  llm: LlmNeeds;
}): Runtimes {
  const byType = {
    expression: expressionRuntime(runners, schedule),
    script: scriptRuntime(runners),
    http: httpRuntime(http),
    llm: llmRuntime(llm),
  };
  const queues = () => ({ runners: runners.queued, http: http.turns.waiting, llm: llm.turns.waiting });
  return {
    byType,
    get waiting() {
      return Object.values(queues()).reduce((sum, waiting) => sum + waiting, 0);
    },
    get queues() {
      return queues();
    },
    get runners() {
      return runners.state;
    },
    stop: async () => void (await Promise.all(Object.values(byType).map((runtime) => runtime.stop()))),
  };
}
