import { ServiceError } from 'platform/errors.ts';
import type { Log } from 'platform/log.ts';
import type { Evaluation, EvaluationResult } from './evaluation.ts';
import { startRunner, type Runner } from './runner.ts';

export type { Evaluation, EvaluationResult, RunLimits } from './evaluation.ts';

export interface RunnerPool {
  /** @throws ServiceError QUEUE_FULL when as many runs wait as may */
  evaluate(evaluation: Evaluation): Promise<EvaluationResult>;
  readonly queued: number;
  /** Interrupts what runs and waits; takes nothing more. */
  stop(): Promise<void>;
}

export interface RunnerPoolOptions {
  size: number;
  queueLimit: number;
  /** A runner is replaced after this many runs. */
  recycleAfter: number;
  log: Log;
}

interface Waiting {
  evaluation: Evaluation;
  resolve(result: EvaluationResult): void;
}

/** Runner processes, started when first needed; a bounded queue that takes organizations in turn. */
export function startRunnerPool({ size, queueLimit, recycleAfter, log }: RunnerPoolOptions): RunnerPool {
  /** Organizations in the order of their turns; each with its own queue. */
  const queues = new Map<string, Waiting[]>();
  const idle: Runner[] = [];
  const busy = new Set<Runner>();
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  let queued = 0;

  function takeNext(): Waiting | undefined {
    const [turn] = queues;
    if (!turn) return undefined;
    const [organizationId, queue] = turn;
    const next = queue.shift();
    queues.delete(organizationId);
    if (queue.length > 0) queues.set(organizationId, queue);
    queued--;
    return next;
  }

  function withdraw(organizationId: string, waiting: Waiting): void {
    const queue = queues.get(organizationId);
    const place = queue?.indexOf(waiting) ?? -1;
    if (!queue || place < 0) return;
    queue.splice(place, 1);
    if (queue.length === 0) queues.delete(organizationId);
    queued--;
    waiting.resolve({ outcome: 'cancelled', steps: 0 });
  }

  /** An idle runner of this heap size, or a new one in the place of one of another size. */
  function runnerFor(memoryMb: number): Runner {
    const place = idle.findIndex((runner) => runner.alive && runner.memoryMb === memoryMb);
    if (place >= 0) return (idle.splice(place, 1) as [Runner])[0];
    if (idle.length + busy.size >= size) void idle.shift()?.kill();
    return startRunner(memoryMb);
  }

  function dispatch(): void {
    while (busy.size < size) {
      const next = takeNext();
      if (!next) return;
      const work = serve(next).finally(() => running.delete(work));
      running.add(work);
    }
  }

  async function serve({ evaluation: { runtime, argsText, limits, signal }, resolve }: Waiting): Promise<void> {
    const runner = runnerFor(limits.memoryMb);
    busy.add(runner);
    const result = await runner.run({ source: runtime.source, argsText, limits }, AbortSignal.any([signal, stopping.signal]));
    busy.delete(runner);
    if (!runner.alive) log.info({ outcome: result.outcome }, 'a runner ended');
    else if (runner.runs >= recycleAfter) void runner.kill();
    else idle.push(runner);
    resolve(stopping.signal.aborted && result.outcome === 'cancelled' ? { outcome: 'interrupted' } : result);
    dispatch();
  }

  return {
    get queued() { return queued; },
    evaluate(evaluation) {
      const { organizationId, signal } = evaluation;
      if (stopping.signal.aborted) throw new ServiceError('UNAVAILABLE');
      if (signal.aborted) return Promise.resolve({ outcome: 'cancelled', steps: 0 });
      if (busy.size >= size && queued >= queueLimit) throw new ServiceError('QUEUE_FULL', undefined, { headers: { 'Retry-After': '1' } });
      const { promise, resolve } = Promise.withResolvers<EvaluationResult>();
      const leave = (): void => withdraw(organizationId, waiting);
      const waiting: Waiting = {
        evaluation,
        resolve(result) {
          signal.removeEventListener('abort', leave);
          resolve(result);
        },
      };
      signal.addEventListener('abort', leave);
      queues.set(organizationId, [...(queues.get(organizationId) ?? []), waiting]);
      queued++;
      dispatch();
      return promise;
    },
    async stop() {
      stopping.abort();
      for (const waiting of [...queues.values()].flat()) waiting.resolve({ outcome: 'interrupted' });
      queues.clear();
      queued = 0;
      await Promise.all(running);
      await Promise.all(idle.splice(0).map((runner) => runner.kill()));
    },
  };
}
