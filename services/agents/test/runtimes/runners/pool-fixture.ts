import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import { makeLog } from 'platform/core/log.ts';
import type { RunTools } from '../../../src/tools/run-tools.ts';
import type { RunLimits } from '../../../src/runtimes/rules.ts';
import type { RunResult } from '../../../src/runtimes/runtime.ts';
import { startRunnerPool, type RunnerPool } from '../../../src/runtimes/runners/runner-pool.ts';
import { cpuTicks, runnersOf, until } from './runner-processes.ts';

export const LIMITS: RunLimits = { wallMs: 60_000, maxSteps: 1_000_000_000_000, memoryMb: 64, outputBytes: 1_000_000 };
export const ENDLESS = '($f := function($n) { $f($n + 1) }; $f(0))';
export const cpuMs: unknown = expect.any(Number);
/** What `1 + 1` gives. */
export const SUCCEEDED = { outcome: 'succeeded', outputText: '2', usage: { steps: 3, cpuMs }, messages: [] };

export interface Run {
  type?: 'expression' | 'script';
  args?: unknown;
  limits?: Partial<RunLimits>;
  organizationId?: string;
  signal?: AbortSignal;
  onStart?: () => void;
  trace?: boolean;
  tools?: RunTools;
}
export interface TestPool extends RunnerPool {
  run(source: string, run?: Run): Promise<RunResult>;
}

/** A pool of one runner, unless `options` say otherwise. */
export function testPool(options: Partial<Parameters<typeof startRunnerPool>[0]> = {}): TestPool {
  const pool = startRunnerPool({
    size: 1,
    queueLimit: 10,
    recycleAfter: 500,
    log: makeLog('agents', 'silent'),
    schedule: fairScheduler(),
    ...options,
  });
  return {
    evaluate: pool.evaluate,
    stop: pool.stop,
    get queued() {
      return pool.queued;
    },
    get state() {
      return pool.state;
    },
    run: (
      source,
      {
        type = 'expression',
        args = {},
        limits,
        organizationId = 'one',
        signal,
        onStart = () => undefined,
        trace = false,
        tools,
      } = {},
    ) =>
      pool.evaluate({
        runtime: { type, source },
        argsText: JSON.stringify(args),
        limits: { ...LIMITS, ...limits },
        ...{ trace, tools },
        organizationId,
        signal: signal ?? new AbortController().signal,
        onStart,
      }),
  };
}

/** Process ids of the runners of this process. */
export const runners = (program?: string): number[] => runnersOf(process.pid, program);

/**
 * Waits until the only runner computes, and resolves to its process id. The runner must have run before, because
 * processor time of its start counts as well.
 */
export async function computing(): Promise<number> {
  await until(() => runners().length > 0);
  const [pid] = runners() as [number];
  const before = cpuTicks(pid);
  await until(() => cpuTicks(pid) > before + 50);
  return pid;
}
