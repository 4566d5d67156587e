import { rm } from 'node:fs/promises';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import { messagesOf } from '../messages.ts';
import type { RunRequest, RunResult } from '../runtime.ts';
import type { RunnerResult, SourceDefinition } from './evaluation.ts';
import { memoryMbOf } from './process-memory.ts';
import { runQueue } from '../run-queue.ts';
import { startRunner, type Runner } from './runner.ts';
import { sizeOf } from './size-classes.ts';

/** A runner that keeps this much more memory than it had when it started is replaced. */
const MAX_GROWTH_MB = 32;
/** How often a runner's memory is looked at within the number of runs after which it is replaced. */
const LOOKS_AT_MEMORY = 20;

/** A run, or the check of its source when it has no args. */
export interface EvaluationRequest extends Pick<
  RunRequest,
  'limits' | 'organizationId' | 'signal' | 'onStart' | 'trace' | 'tools'
> {
  runtime: SourceDefinition;
  argsText?: string;
}

export interface RunnerPool {
  /**
   * Waits for a runner, in turn with other organizations, then evaluates; see Runtime.
   * @throws ServiceError QUEUE_FULL, UNAVAILABLE (stopping): nothing was run
   */
  evaluate(request: EvaluationRequest): Promise<RunResult>;
  /** Kills every runner; evaluations that run or wait are interrupted. */
  stop(): Promise<void>;
  /** Evaluations that wait for a runner. */
  readonly queued: number;
  /** Of the processes; `started` and `replaced` since the pool was. */
  readonly state: { busy: number; idle: number; started: number; replaced: number };
}

interface WaitingEvaluation {
  start(): void;
  interrupt(): void;
  reject(error: ServiceError): void;
}

/**
 * A pool of child processes, each started when it is needed. While `size` runs are running, a spare runner stands ready
 * for the next organization that has nothing running. A runner that has served `recycleAfter` runs, or has grown, works
 * on until another one stands ready in its place. Both are started one after the other, because a start takes a core
 * for a fifth of a second.
 * @param options.size runners for all organizations
 * @param options.maxSize with the further ones, of which each serves an organization that has nothing else running
 * @param options.idleMs time after which a runner ends that nobody has used, unless it is one of `size` or the spare
 * @param options.maxGrowthMb memory that a runner may keep beyond what it had when it started
 * @param options.schedule runs the check of a long report
 * @param options.program what a runner executes; given in tests
 */
export function startRunnerPool({
  size,
  maxSize = size,
  idleMs = 0,
  queueLimit,
  log,
  schedule,
  recycleAfter,
  maxGrowthMb = MAX_GROWTH_MB,
  program,
}: {
  size: number;
  maxSize?: number;
  idleMs?: number;
  queueLimit: number;
  log: Log;
  schedule: FairScheduler;
  recycleAfter: number;
  maxGrowthMb?: number;
  program?: string;
}): RunnerPool {
  /** The longest idle first; each with the timer that ends it. */
  const idle = new Map<Runner, NodeJS.Timeout>();
  const alive = new Set<Runner>();
  const queue = runQueue<WaitingEvaluation>({ size, maxSize, limit: queueLimit });
  /** Runners to be replaced; true when another one stands ready in their place. */
  const worn = new Map<Runner, boolean>();
  /** A spare or a replacement. */
  let isOneStarting = false;
  /** Of the last run that needed a process: most runs have the same. */
  let usualMemoryMb = 0;
  let folder: string | undefined;
  const counts = { started: 0, replaced: 0 };
  let stopped = false;

  const idleRunner = (memoryMb: number): Runner | undefined =>
    [...idle.keys()].findLast((runner) => runner.memoryMb === memoryMb && runner.alive);

  function forget(runner: Runner): void {
    clearTimeout(idle.get(runner));
    idle.delete(runner);
  }

  function end(runner: Runner): void {
    forget(runner);
    runner.kill();
  }

  function putBack(runner: Runner): void {
    const endIfSpare = (): void => {
      const spares = queue.running >= size ? 1 : 0;
      if (idle.size + queue.running > Math.max(size, queue.running + spares)) end(runner);
    };
    if (!runner.alive || worn.get(runner)) return end(runner);
    idle.set(runner, setTimeout(endIfSpare, idleMs).unref());
    if (worn.has(runner) || isWorn(runner)) replace(runner);
  }

  function isWorn({ runs, pid, startedMb }: Runner): boolean {
    if (runs >= recycleAfter) return true;
    return (
      runs > 0 && runs % Math.ceil(recycleAfter / LOOKS_AT_MEMORY) === 0 && memoryMbOf(pid) > startedMb + maxGrowthMb
    );
  }

  /** Tries again after the runner's next run if it cannot start another one now. */
  function replace(runner: Runner): void {
    worn.set(runner, false);
    startReady(runner.memoryMb, () => {
      counts.replaced += 1;
      if (idle.has(runner)) end(runner);
      else if (runner.alive) worn.set(runner, true);
    });
  }

  /** For a run that counts as running already. */
  function takeRunner(memoryMb: number): Runner {
    const fitting = idleRunner(memoryMb);
    if (fitting) {
      forget(fitting);
      return fitting;
    }
    // The last one of its size stays until its time is over, so that runs of several sizes do not displace each other.
    const sizes = [...idle.keys()].map((runner) => runner.memoryMb);
    const oldest = idle.keys().find((_, i) => sizes.indexOf(sizes[i]!) < sizes.lastIndexOf(sizes[i]!));
    if (oldest && idle.size + queue.running > size) end(oldest);
    return newRunner(memoryMb);
  }

  function newRunner(memoryMb: number): Runner {
    usualMemoryMb = memoryMb;
    folder ??= mkdtempSync(join(tmpdir(), 'runner-'));
    const runner = startRunner({ memoryMb, cwd: folder, log, schedule, program });
    alive.add(runner);
    counts.started += 1;
    void runner.exited.then(() => {
      alive.delete(runner);
      worn.delete(runner);
      forget(runner);
    });
    return runner;
  }

  function startWaiting(): void {
    while (queue.running < size || idle.size > 0) {
      const waiting = queue.next();
      if (!waiting) break;
      waiting.start();
    }
    startSpare();
  }

  function startSpare(): void {
    if (queue.running >= size && queue.running < maxSize && idle.size === 0) startReady(usualMemoryMb);
  }

  /** Starts a runner that nobody waits for, unless another one is just starting. */
  function startReady(memoryMb: number, onReady?: () => void): void {
    if (isOneStarting || stopped) return;
    try {
      const runner = newRunner(memoryMb);
      isOneStarting = true;
      void runner.ready.then(() => {
        isOneStarting = false;
        if (!runner.alive) return;
        putBack(runner);
        onReady?.();
        startWaiting();
      });
    } catch (error) {
      // The next run that comes or ends tries again.
      log.error({ error }, 'a further runner cannot be started');
    }
  }

  async function runOnce({
    runtime,
    argsText,
    limits,
    trace,
    tools,
    organizationId,
    signal,
    onStart,
  }: EvaluationRequest): Promise<RunnerResult> {
    const runner = takeRunner(sizeOf(limits.memoryMb));
    const operations = tools?.operations.map(({ name }) => name) ?? [];
    const maxToolCalls = tools?.maxCalls ?? 0;
    const assignment = { organizationId, runtime, argsText, limits, trace, operations, maxToolCalls };
    const result = await runner.run(assignment, signal, { onStart, tools });
    putBack(runner);
    return result;
  }

  /** For a run that counts as running already. */
  async function runNow(request: EvaluationRequest): Promise<RunnerResult> {
    let cpuMs = 0;
    try {
      let result = await runOnce(request);
      if (result.outcome === 'unstarted' && !stopped) result = await runOnce(request);
      if ('cpuMs' in result) ({ cpuMs } = result);
      return result;
    } finally {
      queue.end(request.organizationId, cpuMs);
      startWaiting();
    }
  }

  function wait(request: EvaluationRequest): Promise<RunnerResult> {
    const { organizationId, signal } = request;
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        queue.remove(organizationId, waiting);
        resolve({ outcome: 'cancelled', steps: 0, cpuMs: 0 });
      };
      const leave = (): void => signal.removeEventListener('abort', cancel);
      const waiting: WaitingEvaluation = {
        start() {
          leave();
          runNow(request).then(resolve, reject);
        },
        interrupt() {
          leave();
          resolve({ outcome: 'interrupted' });
        },
        reject(error) {
          leave();
          reject(error);
        },
      };
      signal.addEventListener('abort', cancel, { once: true });
      queue
        .push(organizationId, waiting)
        ?.reject(new ServiceError('QUEUE_FULL', undefined, { headers: { 'Retry-After': '1' } }));
    });
  }

  return {
    get queued() {
      return queue.length;
    },
    get state() {
      return { busy: queue.running, idle: idle.size, ...counts };
    },
    async evaluate(request) {
      if (stopped)
        throw new ServiceError('UNAVAILABLE', 'The service is stopping', { headers: { 'Retry-After': '1' } });
      if (request.signal.aborted) return { outcome: 'cancelled', usage: { steps: 0, cpuMs: 0 } };
      const isAdmitted = queue.admit(request.organizationId, { spare: idle.size > 0 });
      const result = isAdmitted ? runNow(request) : wait(request);
      startSpare();
      return runResult(await result);
    },
    async stop() {
      stopped = true;
      for (const waiting of queue.clear()) waiting.interrupt();
      for (const runner of alive) runner.kill();
      await Promise.all([...alive].map((runner) => runner.exited));
      if (folder) await rm(folder, { recursive: true, force: true });
    },
  };
}

function runResult(result: RunnerResult): RunResult {
  if (result.outcome === 'unstarted' || result.outcome === 'interrupted') return { outcome: 'interrupted' };
  const usage = { steps: result.steps, cpuMs: result.cpuMs };
  if (result.outcome === 'timed_out' || result.outcome === 'cancelled') return { outcome: result.outcome, usage };
  const messages = messagesOf(result.trace ?? []);
  return result.outcome === 'succeeded'
    ? { outcome: 'succeeded', outputText: result.outputText, messages, usage }
    : { outcome: result.outcome, message: result.message, messages, usage };
}
