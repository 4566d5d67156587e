import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { EvaluationResult, RunnerAnswer, RunnerTask } from './evaluation.ts';

const KILL_GRACE_MS = 250;
const START_LIMIT_MS = 30_000;
/** Signals that say somebody or something outside ended the runner; others are what its own code made of it. */
const FROM_OUTSIDE = new Set<string | null>(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']);

export interface Runner {
  readonly memoryMb: number;
  readonly runs: number;
  /** False once it has ended or is being killed. */
  readonly alive: boolean;
  /** One task; ends by answer, wallMs, the signal or the end of the process. */
  run(task: RunnerTask, signal: AbortSignal): Promise<EvaluationResult>;
  kill(): Promise<void>;
}

/** A process without our environment in an empty folder; its heap ends at memoryMb, its life whenever the pool says so. */
export function startRunner(memoryMb: number): Runner {
  const folder = mkdtempSync(join(tmpdir(), 'runner-'));
  const compileCache = getCompileCacheDir();
  const child = fork(join(import.meta.dirname, 'runner-child.ts'), [], {
    cwd: folder, env: compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache }, serialization: 'json', stdio: ['ignore', 'ignore', 'ignore', 'ipc', 'pipe'],
    execArgv: [`--max-old-space-size=${memoryMb}`, '--max-semi-space-size=8', '--disallow-code-generation-from-strings', '--disable-warning=ExperimentalWarning'],
  });
  let steps = 0;
  let runs = 0;
  let alive = true;
  (child.stdio[4] as Readable).on('data', (chunk: Buffer) => (steps = Number(chunk.toString().trimEnd().split('\n').at(-1))));
  const ended = new Promise<string | null>((resolve) => {
    const end = (signal: string | null): void => {
      alive = false;
      rmSync(folder, { recursive: true, force: true });
      resolve(signal);
    };
    child.once('exit', (_code, signal) => end(signal));
    child.once('error', () => end('SIGKILL'));
  });
  const ready = new Promise<void>((resolve) => child.once('message', () => resolve()));

  const kill = async (): Promise<void> => {
    alive = false;
    child.kill('SIGKILL');
    await ended;
  };

  return {
    memoryMb,
    kill,
    get runs() { return runs; },
    get alive() { return alive; },
    async run(task, signal) {
      runs++;
      const started = await firstOf(ready.then(() => 'ready' as const), ended.then(() => 'ended' as const), START_LIMIT_MS, signal);
      if (started !== 'ready') {
        await kill();
        return started === 'aborted' ? { outcome: 'cancelled', steps: 0 } : { outcome: 'interrupted' };
      }
      steps = 0;
      const answer = answerOf(child);
      child.send(task);
      const first = await firstOf(answer, ended.then((cause) => ({ cause })), task.limits.wallMs + KILL_GRACE_MS, signal);
      if (first === 'late' || first === 'aborted') {
        await kill();
        return { outcome: first === 'late' ? 'timed_out' : 'cancelled', steps };
      }
      if ('cause' in first) return FROM_OUTSIDE.has(first.cause) ? { outcome: 'interrupted' } : { outcome: 'failed', code: 'agent_failed', message: `The agent used more than ${memoryMb} MB of memory`, steps };
      if ('timedOut' in first) return { outcome: 'timed_out', steps: first.steps };
      if ('message' in first) return { outcome: 'failed', code: 'agent_failed', ...first };
      return { outcome: 'succeeded', ...first, messages: [] };
    },
  };
}

const answerOf = (child: ChildProcess): Promise<RunnerAnswer> => new Promise((resolve) => child.once('message', (answer) => resolve(answer as RunnerAnswer)));

/** What comes first: one of two events, the time limit or the signal. */
function firstOf<A, B>(one: Promise<A>, other: Promise<B>, limitMs: number, signal: AbortSignal): Promise<A | B | 'late' | 'aborted'> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => settle('late'), limitMs);
    const aborted = (): void => settle('aborted');
    const settle = (outcome: A | B | 'late' | 'aborted'): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
      resolve(outcome);
    };
    if (signal.aborted) return settle('aborted');
    signal.addEventListener('abort', aborted);
    void one.then(settle);
    void other.then(settle);
  });
}
