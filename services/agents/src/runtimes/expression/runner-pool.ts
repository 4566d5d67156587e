import { rm } from 'node:fs/promises';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import type { Log } from 'platform/core/log.ts';
import type { Message } from 'proto/agents/v1/agents.ts';
import { fairQueue } from 'platform/core/fair-queue.ts';
import { startRunner, type Runner, type RunnerResult } from './runner.ts';

export interface RunLimits {
  wallMs: number;
  maxSteps: number;
  memoryMb: number;
  outputBytes: number;
}
export interface Evaluation {
  runtime: { type: 'expression'; source: string };
  argsText: string;
  limits: RunLimits;
  organizationId: string;
  signal: AbortSignal;
  /** Called when a runner takes it: it waits no more. */
  begun(): void;
}
export type EvaluationResult =
  | { outcome: 'succeeded'; outputText: string; steps: number; messages: Message[] }
  /** The agent's fault; the message may be shown to the caller. */
  | { outcome: 'failed'; code: 'agent_failed'; message: string; steps: number }
  /** Of a run that was ended from outside the steps are known to the last ten thousand. */
  | { outcome: 'timed_out'; steps: number }
  | { outcome: 'cancelled'; steps: number }
  /** The platform lost it. */
  | { outcome: 'interrupted' };

export interface RunnerPool {
  /**
   * Waits for a runner, then evaluates; the time limit begins with the evaluation.
   * @throws ServiceError QUEUE_FULL, UNAVAILABLE (stopping): nothing was run
   */
  evaluate(evaluation: Evaluation): Promise<EvaluationResult>;
  /** Ends every runner; what runs or waits is interrupted. */
  stop(): Promise<void>;
  readonly queued: number;
}

interface Waiting extends Evaluation {
  start(): void;
  drop(): void;
}

/** A pool of child processes, started when first needed. A runner is replaced after `recycleAfter` runs, and whenever it had to be ended. */
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
  const living = new Set<Runner>();
  const queue = fairQueue<Waiting>();
  let folder: string | undefined;
  let stopped = false;

  function takeRunner(memoryMb: number): Runner {
    const fitting = idle.findLastIndex((runner) => runner.memoryMb === memoryMb);
    if (fitting >= 0) return idle.splice(fitting, 1)[0]!;
    if (idle.length + busy.size === size) idle.shift()!.kill();
    folder ??= mkdtempSync(join(tmpdir(), 'runner-'));
    const runner = startRunner({ memoryMb, cwd: folder, log });
    living.add(runner);
    void runner.exited.then(() => {
      living.delete(runner);
      if (idle.includes(runner)) idle.splice(idle.indexOf(runner), 1);
    });
    return runner;
  }

  async function runNow(evaluation: Evaluation, mayRepeat = true): Promise<RunnerResult> {
    const {
      runtime: { source },
      argsText,
      limits: { memoryMb, ...limits },
      signal,
    } = evaluation;
    const runner = takeRunner(memoryMb);
    busy.add(runner);
    evaluation.begun();
    const result = await runner.run({ source, argsText, limits }, signal);
    busy.delete(runner);
    if (runner.alive && runner.runs < recycleAfter) idle.push(runner);
    else runner.kill();
    if (result.outcome === 'unstarted' && mayRepeat && !stopped) return runNow(evaluation, false);
    queue.shift()?.start();
    return result;
  }

  function wait(evaluation: Evaluation): Promise<RunnerResult> {
    const { organizationId, signal } = evaluation;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        queue.remove(organizationId, waiting);
        resolve({ outcome: 'cancelled', steps: 0 });
      };
      const waiting: Waiting = {
        ...evaluation,
        start: () => {
          signal.removeEventListener('abort', leave);
          runNow(evaluation).then(resolve, reject);
        },
        drop: () => {
          signal.removeEventListener('abort', leave);
          resolve({ outcome: 'interrupted' });
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      queue.push(organizationId, waiting);
    });
  }

  return {
    get queued() {
      return queue.length;
    },
    async evaluate(evaluation) {
      if (stopped)
        throw new ServiceError('UNAVAILABLE', 'The service is stopping', { headers: { 'Retry-After': '1' } });
      if (evaluation.signal.aborted) return { outcome: 'cancelled', steps: 0 };
      if (busy.size === size && queue.length >= queueLimit)
        throw new ServiceError('QUEUE_FULL', undefined, { headers: { 'Retry-After': '1' } });
      return outcomeOf(await (busy.size === size ? wait(evaluation) : runNow(evaluation)));
    },
    async stop() {
      stopped = true;
      for (let waiting = queue.shift(); waiting; waiting = queue.shift()) waiting.drop();
      for (const runner of living) runner.kill();
      await Promise.all([...living].map((runner) => runner.exited));
      if (folder) await rm(folder, { recursive: true, force: true });
    },
  };
}

function outcomeOf(result: RunnerResult): EvaluationResult {
  if (result.outcome === 'succeeded') return { ...result, messages: [] };
  if (result.outcome === 'failed') return { ...result, code: 'agent_failed' };
  return result.outcome === 'unstarted' ? { outcome: 'interrupted' } : result;
}
