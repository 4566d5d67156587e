import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import { strictestStarter, type Starter } from './confinement.ts';
import { openCpuClock } from './cpu-time.ts';
import type { EvaluationResult } from './evaluation.ts';
import { lineSplitter } from './lines.ts';
import { memoryMbOf } from './process-memory.ts';
import { InvalidReportError, maxReportBytes, readReport, REPORT_BYTES, type Progress } from './reports.ts';
import type { Assignment } from './runner-child.ts';
import { RUNNER_PROGRAM, runnerCommand } from './runner-command.ts';

/** Time for a child process to start, and to begin an evaluation. */
const START_MS = 30_000;
/** Beyond `wallMs`, before the process is killed: where it can, the child ends an evaluation by itself at `wallMs`. */
const GRACE_MS = 500;
/** A process that dies by itself takes its count of processor time with it, so the count is also read this often. */
const CPU_SAMPLE_MS = 250;
/** V8 limits its heap; memory outside of it is limited by the parent, which looks this often. */
const MEMORY_SAMPLE_MS = 50;
/** Evaluations yield to the services and to runners that start: they are nicer by this much (setpriority(2)). */
const NICENESS = 10;
/** Beyond `memoryMb`, before the process is killed: twice what a process at the limit of its heap was seen to take. */
const BASE_OF_ALL_MEMORY_MB = 160;

/** The first evaluation of a process in each language: it shows that it works, and is charged to nobody. */
const FIRST_SOURCES: Record<string, string> = { expression: '1', script: 'const run = () => 1;' };
const firstOf = (type: string, memoryMb: number): Omit<Assignment, 'id'> => ({
  organizationId: '',
  runtime: { type, source: FIRST_SOURCES[type]! },
  argsText: '{}',
  trace: false,
  limits: { wallMs: START_MS, maxSteps: 1_000, memoryMb, outputBytes: 1_000 },
});

/** Signals by which V8 ends a process that is out of memory, or out of stack in a native function. */
const OUT_OF_MEMORY = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV']);

/** `cpuMs` is the processor time as the parent measured it, in begun milliseconds. */
export type RunnerResult =
  | (EvaluationResult & { cpuMs: number })
  | { outcome: 'cancelled'; steps: number; cpuMs: number }
  | { outcome: 'interrupted' }
  /** The process died before it began the evaluation, so another process may evaluate it. */
  | { outcome: 'unstarted' };

/** A child process that evaluates one expression at a time. */
export interface Runner {
  readonly memoryMb: number;
  readonly pid: number;
  /** What it took in all when it had started, in MB; 0 before. */
  readonly startedMb: number;
  /** Evaluations so far. */
  readonly runs: number;
  /** False once the process was killed or died. */
  readonly alive: boolean;
  /**
   * Waits until the process has started, then evaluates. Kills the process when `signal` aborts, when the evaluation
   * exceeds a limit and does not end by itself, when it takes too much memory outside of V8's heap, and when the
   * process reports what cannot be.
   * @param onStart called when the process gets the assignment
   */
  run(assignment: Omit<Assignment, 'id'>, signal: AbortSignal, onStart?: () => void): Promise<RunnerResult>;
  kill(): void;
  /** Resolves when the process has started, or has failed to. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
}

interface Evaluation extends Progress {
  organizationId: string;
  timer: NodeJS.Timeout | undefined;
  end(result: RunnerResult): void;
  cpuMs(): number;
}

/**
 * @param options.cwd an empty folder
 * @param options.schedule runs the check of a long report
 * @param options.program what the process runs; it speaks as runner-child.ts does
 * @param options.starter confines the process
 */
export function startRunner({
  memoryMb,
  cwd,
  log,
  schedule,
  program = RUNNER_PROGRAM,
  starter = strictestStarter(log),
}: {
  memoryMb: number;
  cwd: string;
  log: Log;
  schedule: FairScheduler;
  program?: string;
  starter?: Starter;
}): Runner {
  // `NODE_CHANNEL_FD` gives the child Node's channel of JSON lines (child_process, "fork"); this end reads it itself.
  const [file, ...args] = starter(runnerCommand(memoryMb, program));
  const child = spawn(file, args, {
    env: { NODE_CHANNEL_FD: '3' },
    cwd,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  let alive = true;
  let runs = -1;
  let startedMb = 0;
  let now: Evaluation | undefined;

  const kill = (): void => {
    alive = false;
    child.kill('SIGKILL');
  };
  const endOfMemory = ({ steps, cpuMs, end }: Evaluation): void =>
    end({
      outcome: 'failed',
      message: `The run takes more than ${memoryMb} MB of memory`,
      steps,
      cpuMs: cpuMs(),
    });
  const endOfDeath = (): void => now?.end({ outcome: now.started ? 'interrupted' : 'unstarted' });
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      log.error({ error }, 'a runner failed');
      kill();
      endOfDeath();
    });
    child.once('exit', (code, signal) => {
      if (alive) log.warn({ pid: child.pid, code, signal, runs }, 'a runner died');
      alive = false;
      if (now?.started && signal !== null && OUT_OF_MEMORY.has(signal)) endOfMemory(now);
      else endOfDeath();
      resolve();
    });
  });
  if (child.pid === undefined) throw new Error('No runner can be started');
  const { pid } = child;
  const clock = openCpuClock(pid);
  void exited.then(clock.close);
  const channel = child.stdio[3] as Socket;
  // A process that is killed resets its channel when it has not read all of it.
  channel.on('error', (error) => log[alive ? 'warn' : 'debug']({ error, pid }, 'a runner could not be reached'));

  function onReport(line: string): void {
    if (!now) throw new InvalidReportError('a report without an evaluation');
    const report = readReport(line, now);
    if (report.kind === 'finished') now.end({ ...report.result, cpuMs: now.cpuMs() });
    else if (report.kind === 'steps') now.steps = report.steps;
    else {
      now.started = true;
      killAfter(now, now.limits.wallMs + GRACE_MS);
    }
  }
  const onLie = (error: unknown): void => {
    log.error({ error, pid, runs }, 'a runner reported what cannot be, and is killed');
    kill();
    now?.end({ outcome: 'interrupted' });
  };
  /** Reports that wait for their turn; those after them wait as well. */
  let waiting = 0;
  function onLine(line: string): void {
    if (!now || (waiting === 0 && line.length <= REPORT_BYTES)) return onReport(line);
    // Only the last report of an evaluation is long, and then the runner has kept its limit of time.
    if (line.length > REPORT_BYTES) clearTimeout(now.timer);
    waiting += 1;
    const check = (): void => {
      waiting -= 1;
      if (alive) onReport(line);
    };
    schedule(now.organizationId, check).catch(onLie);
  }
  const split = lineSplitter(() => maxReportBytes(now), onLine);
  channel.on('data', (piece: Buffer) => {
    if (!alive) return;
    try {
      if (!split(piece)) throw new InvalidReportError('a report that is too long');
    } catch (error) {
      onLie(error);
    }
  });

  function killAfter(evaluation: Evaluation, ms: number): void {
    clearTimeout(evaluation.timer);
    evaluation.timer = setTimeout(() => {
      const { started, steps } = evaluation;
      const cpuMs = evaluation.cpuMs();
      kill();
      evaluation.end(started ? { outcome: 'timed_out', steps, cpuMs } : { outcome: 'unstarted' });
    }, ms);
  }

  function evaluate(assignment: Omit<Assignment, 'id'>, signal: AbortSignal): Promise<RunnerResult> {
    const id = ++runs;
    return new Promise<RunnerResult>((resolve) => {
      const startMs = clock.nowMs();
      let usedMs = 0;
      const cpuMs = (): number => (usedMs = Math.max(usedMs, Math.ceil(clock.nowMs() - startMs)));
      const cpuSampling = setInterval(cpuMs, CPU_SAMPLE_MS);
      const memorySampling = setInterval(() => {
        if (!evaluation.started || memoryMbOf(pid) <= memoryMb + BASE_OF_ALL_MEMORY_MB) return;
        cpuMs();
        kill();
        endOfMemory(evaluation);
      }, MEMORY_SAMPLE_MS);
      const cancel = (): void => {
        const { steps } = evaluation;
        const result: RunnerResult = { outcome: 'cancelled', steps, cpuMs: cpuMs() };
        kill();
        evaluation.end(result);
      };
      const evaluation: Evaluation = (now = {
        id,
        started: false,
        steps: 0,
        organizationId: assignment.organizationId,
        limits: assignment.limits,
        trace: assignment.trace,
        timer: undefined,
        cpuMs,
        end(result) {
          now = undefined;
          clearTimeout(evaluation.timer);
          clearInterval(cpuSampling);
          clearInterval(memorySampling);
          signal.removeEventListener('abort', cancel);
          resolve(result);
        },
      });
      signal.addEventListener('abort', cancel, { once: true });
      killAfter(evaluation, START_MS);
      if (alive) channel.write(`${JSON.stringify({ id, ...assignment } satisfies Assignment)}\n`);
      else endOfDeath();
    });
  }

  const tried = new Set<string>();
  /** Kills the process when it cannot evaluate this language. */
  async function tryFirst(type: string): Promise<void> {
    const { outcome } = await evaluate(firstOf(type, memoryMb), new AbortController().signal);
    if (outcome === 'succeeded') tried.add(type);
    else kill();
  }

  const ready = tryFirst('expression').then(() => {
    if (!alive) return;
    startedMb = memoryMbOf(pid);
    try {
      setPriority(pid, Math.min(19, getPriority() + NICENESS));
    } catch (error) {
      log.warn({ error, pid }, 'a runner keeps the priority of the service');
    }
  });

  return {
    memoryMb,
    pid,
    kill,
    ready,
    exited,
    get alive() {
      return alive;
    },
    get startedMb() {
      return startedMb;
    },
    get runs() {
      return runs;
    },
    async run(assignment, signal, onStart) {
      await ready;
      const { type } = assignment.runtime;
      if (alive && !tried.has(type)) await tryFirst(type);
      if (!alive) return { outcome: 'unstarted' };
      if (signal.aborted) return { outcome: 'cancelled', steps: 0, cpuMs: 0 };
      onStart?.();
      return evaluate(assignment, signal);
    },
  };
}
