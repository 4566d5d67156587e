import { rm } from 'node:fs/promises';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import type { Log } from 'platform/core/log.ts';
import type { Message } from 'proto/agents/v1/agents.ts';
import { fairQueue } from 'platform/core/fair-queue.ts';
import type { ExpressionLimits } from './evaluator.ts';
import { startRunner, type Runner, type RunnerResult } from './runner.ts';

export interface RunLimits extends ExpressionLimits {
  memoryMb: number;
}

export interface EvaluationRequest {
  runtime: { type: 'expression'; source: string };
  argsText: string;
  limits: RunLimits;
  organizationId: string;
  signal: AbortSignal;
  /** Called when a runner is assigned: the evaluation no longer waits. */
  onStart(): void;
}

export type EvaluationResult =
  | { outcome: 'succeeded'; outputText: string; steps: number; messages: Message[] }
  /** The agent's fault; the message may be shown to the caller. */
  | { outcome: 'failed'; code: 'agent_failed'; message: string; steps: number }
  /** When the evaluation was ended from outside, `steps` is rounded down to ten thousand. */
  | { outcome: 'timed_out'; steps: number }
  | { outcome: 'cancelled'; steps: number }
  /** The platform's fault: its runner died, or the service stopped. */
  | { outcome: 'interrupted' };

export interface RunnerPool {
  /**
   * Waits for a runner, in turn with other organizations, then evaluates. The time limit begins with the evaluation.
   * @throws ServiceError QUEUE_FULL, UNAVAILABLE (stopping): nothing was run
   */
  evaluate(request: EvaluationRequest): Promise<EvaluationResult>;
  /** Kills every runner; evaluations that run or wait are interrupted. */
  stop(): Promise<void>;
  /** Evaluations that wait for a runner. */
  readonly queued: number;
}

interface WaitingEvaluation extends EvaluationRequest {
  start(): void;
  interrupt(): void;
}

/**
 * A pool of child processes, each started when it is needed. A runner is replaced after `recycleAfter` runs, and after
 * it was killed.
 */
export function startRunnerPool({
  size,
  queueLimit,
  log,
  recycleAfter,
}: {
  size: number;
  queueLimit: number;
  log: Log;
  recycleAfter: number;
}): RunnerPool {
  const idle: Runner[] = [];
  const busy = new Set<Runner>();
  const alive = new Set<Runner>();
  const queue = fairQueue<WaitingEvaluation>();
  let folder: string | undefined;
  let stopped = false;

  function takeRunner(memoryMb: number): Runner {
    const fitting = idle.findLastIndex((runner) => runner.memoryMb === memoryMb);
    if (fitting >= 0) return idle.splice(fitting, 1)[0]!;
    if (idle.length + busy.size === size) idle.shift()!.kill();
    folder ??= mkdtempSync(join(tmpdir(), 'runner-'));
    const runner = startRunner({ memoryMb, cwd: folder, log });
    alive.add(runner);
    void runner.exited.then(() => {
      alive.delete(runner);
      if (idle.includes(runner)) idle.splice(idle.indexOf(runner), 1);
    });
    return runner;
  }

  async function runNow(request: EvaluationRequest, mayRetry = true): Promise<RunnerResult> {
    const {
      runtime: { source },
      argsText,
      limits: { memoryMb, ...limits },
      organizationId,
      signal,
    } = request;
    const runner = takeRunner(memoryMb);
    busy.add(runner);
    request.onStart();
    const result = await runner.run({ organizationId, source, argsText, limits }, signal);
    busy.delete(runner);
    if (runner.alive && runner.runs < recycleAfter) idle.push(runner);
    else runner.kill();
    if (result.outcome === 'unstarted' && mayRetry && !stopped) return runNow(request, false);
    queue.shift()?.start();
    return result;
  }

  function wait(request: EvaluationRequest): Promise<RunnerResult> {
    const { organizationId, signal } = request;
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        queue.remove(organizationId, waiting);
        resolve({ outcome: 'cancelled', steps: 0 });
      };
      const waiting: WaitingEvaluation = {
        ...request,
        start: () => {
          signal.removeEventListener('abort', cancel);
          runNow(request).then(resolve, reject);
        },
        interrupt: () => {
          signal.removeEventListener('abort', cancel);
          resolve({ outcome: 'interrupted' });
        },
      };
      signal.addEventListener('abort', cancel, { once: true });
      queue.push(organizationId, waiting);
    });
  }

  return {
    get queued() {
      return queue.length;
    },
    async evaluate(request) {
      if (stopped)
        throw new ServiceError('UNAVAILABLE', 'The service is stopping', { headers: { 'Retry-After': '1' } });
      if (request.signal.aborted) return { outcome: 'cancelled', steps: 0 };
      if (busy.size === size && queue.length >= queueLimit)
        throw new ServiceError('QUEUE_FULL', undefined, { headers: { 'Retry-After': '1' } });
      return evaluationResult(await (busy.size === size ? wait(request) : runNow(request)));
    },
    async stop() {
      stopped = true;
      for (let waiting = queue.shift(); waiting; waiting = queue.shift()) waiting.interrupt();
      for (const runner of alive) runner.kill();
      await Promise.all([...alive].map((runner) => runner.exited));
      if (folder) await rm(folder, { recursive: true, force: true });
    },
  };
}

function evaluationResult(result: RunnerResult): EvaluationResult {
  if (result.outcome === 'succeeded') return { ...result, messages: [] };
  if (result.outcome === 'failed') return { ...result, code: 'agent_failed' };
  return result.outcome === 'unstarted' ? { outcome: 'interrupted' } : result;
}
