import { fork, type ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Log } from 'platform/core/log.ts';
import type { ExpressionResult } from './evaluator.ts';
import type { Assignment, Report } from './runner-child.ts';

/** Time for a child process to start. */
const START_MS = 30_000;
/** Beyond `wallMs`, before the process is killed: where it can, the child ends an evaluation by itself at `wallMs`. */
const GRACE_MS = 500;
/** Heap that Node and JSONata use before an agent runs. */
const BASE_MB = 24;
/** All files that a runner may read. It may write no file and start nothing but the thread that watches its parent. */
const READABLE = [
  join(import.meta.dirname, '*'),
  join(import.meta.dirname, '../../../package.json'),
  folderOf('jsonata'),
  folderOf('re2js'),
];

/** Signals by which V8 ends a process that is out of memory, or out of stack in a native function. */
const OUT_OF_MEMORY = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV']);

export type RunnerResult =
  | ExpressionResult
  | { outcome: 'cancelled'; steps: number }
  | { outcome: 'interrupted' }
  /** The process died before it began the evaluation, so another process may evaluate it. */
  | { outcome: 'unstarted' };

/** A child process that evaluates one expression at a time. */
export interface Runner {
  readonly memoryMb: number;
  readonly pid: number | undefined;
  /** Evaluations so far. */
  readonly runs: number;
  /** False once the process was killed or died. */
  readonly alive: boolean;
  /** Kills the process when `signal` aborts, or the evaluation exceeds a limit and does not end by itself. */
  run(assignment: Omit<Assignment, 'id'>, signal: AbortSignal): Promise<RunnerResult>;
  kill(): void;
  readonly exited: Promise<void>;
}

/** @param options.cwd an empty folder */
export function startRunner({ memoryMb, cwd, log }: { memoryMb: number; cwd: string; log: Log }): Runner {
  const child: ChildProcess = fork(join(import.meta.dirname, 'runner-child.ts'), [String(process.pid)], {
    execArgv: [
      `--max-old-space-size=${memoryMb + BASE_MB}`,
      '--max-semi-space-size=8',
      '--disallow-code-generation-from-strings',
      '--disable-proto=throw',
      '--permission',
      '--allow-worker',
      ...READABLE.map((path) => `--allow-fs-read=${path}`),
    ],
    env: {},
    cwd,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  let alive = true;
  let runs = 0;
  let steps = 0;
  let started = false;
  let timer: NodeJS.Timeout | undefined;
  let finish: ((result: RunnerResult) => void) | undefined;

  const finishWith = (result: RunnerResult): void => {
    clearTimeout(timer);
    finish?.(result);
    finish = undefined;
  };
  const resultOfDeath = (): RunnerResult => ({ outcome: started ? 'interrupted' : 'unstarted' });
  const kill = (): void => {
    alive = false;
    child.kill('SIGKILL');
  };
  const killAfter = (ms: number, result: () => RunnerResult): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      kill();
      finishWith(result());
    }, ms);
  };

  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      log.error({ error }, 'a runner failed');
      kill();
      finishWith(resultOfDeath());
      if (child.pid === undefined) resolve();
    });
    child.once('exit', (code, signal) => {
      if (alive) log.warn({ pid: child.pid, code, signal, runs }, 'a runner died');
      alive = false;
      finishWith(
        started && signal !== null && OUT_OF_MEMORY.has(signal)
          ? { outcome: 'failed', message: `The expression takes more than ${memoryMb} MB of memory`, steps }
          : resultOfDeath(),
      );
      resolve();
    });
  });

  return {
    memoryMb,
    kill,
    exited,
    pid: child.pid,
    get alive() {
      return alive;
    },
    get runs() {
      return runs;
    },
    run(assignment, signal) {
      const id = ++runs;
      steps = 0;
      started = false;
      return new Promise<RunnerResult>((resolve) => {
        const cancel = (): void => {
          kill();
          finishWith({ outcome: 'cancelled', steps });
        };
        const onReport = (report: Report): void => {
          if (report.id !== id) return;
          if (report.kind === 'started') {
            started = true;
            killAfter(assignment.limits.wallMs + GRACE_MS, () => ({ outcome: 'timed_out', steps }));
          } else if (report.kind === 'steps') steps = report.steps;
          else finishWith(report.result);
        };
        finish = (result) => {
          signal.removeEventListener('abort', cancel);
          child.off('message', onReport);
          resolve(result);
        };
        signal.addEventListener('abort', cancel, { once: true });
        child.on('message', onReport);
        killAfter(START_MS, resultOfDeath);
        child.send({ id, ...assignment } satisfies Assignment, (error) => {
          if (error) log.warn({ error, pid: child.pid }, 'a runner could not be reached');
        });
      });
    },
  };
}

function folderOf(packageName: string): string {
  const file = createRequire(import.meta.url).resolve(packageName);
  const end = join('node_modules', packageName, '/');
  return join(file.slice(0, file.lastIndexOf(end) + end.length), '*');
}
