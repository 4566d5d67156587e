import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import type { Config } from '../config.ts';
import { expressionRuntime } from './expression/runtime.ts';
import { startRunnerPool, type RunnerPool } from './runners/runner-pool.ts';
import type { Runtime } from './runtime.ts';
import { scriptRuntime } from './script/runtime.ts';

/** Every runtime, by the name that definitions give in `/runtime/type`. */
export interface Runtimes {
  byType: Readonly<Record<string, Runtime>>;
  /** Runs that wait for their turn. */
  readonly waiting: number;
  /** Ends all runs of all runtimes. */
  stop(): Promise<void>;
}

export function openRuntimes({
  config,
  log,
  schedule,
}: {
  config: Pick<Config, 'RUNNERS' | 'RUNNERS_MAX' | 'RUNNER_IDLE_MS' | 'RUN_QUEUE_LIMIT' | 'RUNNER_RECYCLE_AFTER'>;
  log: Log;
  schedule: FairScheduler;
}): Runtimes {
  const runners = startRunnerPool({
    size: config.RUNNERS,
    maxSize: config.RUNNERS_MAX,
    idleMs: config.RUNNER_IDLE_MS,
    queueLimit: config.RUN_QUEUE_LIMIT,
    recycleAfter: config.RUNNER_RECYCLE_AFTER,
    log,
    schedule,
  });
  return runtimesOf(runners, schedule);
}

/** @param runners evaluate the runs of the runtimes that need no network */
export function runtimesOf(runners: RunnerPool, schedule: FairScheduler): Runtimes {
  const byType = { expression: expressionRuntime(runners, schedule), script: scriptRuntime(runners) };
  return {
    byType,
    get waiting() {
      return runners.queued;
    },
    stop: async () => void (await Promise.all(Object.values(byType).map((runtime) => runtime.stop()))),
  };
}
