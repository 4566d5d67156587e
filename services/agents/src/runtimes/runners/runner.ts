import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import { strictestStarter, type Starter } from './confinement.ts';
import { openCpuClock } from './cpu-time.ts';
import type { RunnerResult } from './evaluation.ts';
import { makeLimitWatch, outOfMemoryResult, START_MS, type Watched } from './limit-watch.ts';
import { memoryMbOf } from './process-memory.ts';
import { reportReader } from './report-reader.ts';
import { InvalidReportError, readReport, type Progress } from './reports.ts';
import type { RunTools } from '../../tools/run-tools.ts';
import type { Assignment } from './runner-child.ts';
import { RUNNER_PROGRAM, runnerCommand } from './runner-command.ts';
import { giveSources } from './stripped-sources.ts';
import type { ToolAnswer, ToolCall } from './tool-calls.ts';

/** An evaluation that begins this soon after another one takes over its last reading of processor time. */
const REUSE_CPU_READING_MS = 0.5;
/** Evaluations yield to the services and to runners that start: they are nicer by this much (setpriority(2)). */
const NICENESS = 10;

/** The first evaluation of a process in each language: it shows that it works, and is charged to nobody. */
const FIRST_SOURCES: Record<string, string> = { expression: '1', script: 'const run = () => 1;' };
const firstOf = (type: string, memoryMb: number): Omit<Assignment, 'id'> => ({
  organizationId: '',
  runtime: { type, source: FIRST_SOURCES[type]! },
  argsText: '{}',
  ...{ trace: false, operations: [], maxToolCalls: 0 },
  limits: { wallMs: START_MS, maxSteps: 1_000, memoryMb, outputBytes: 1_000 },
});

/** Signals by which V8 ends a process that is out of memory, or out of stack in a native function. */
const OUT_OF_MEMORY = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV']);

/** What an evaluation has beside its assignment. */
interface RunnerRun {
  /** Called when the process gets the assignment. */
  onStart?: () => void;
  tools?: RunTools | undefined;
}

/** A child process that evaluates one expression or script at a time. */
export interface Runner {
  readonly memoryMb: number;
  readonly pid: number;
  /** What it took in all when it had started, in MB; 0 before. */
  readonly startedMb: number;
  /** Evaluations so far, without the first; -1 before it. */
  readonly runs: number;
  /** False once the process was killed or died. */
  readonly alive: boolean;
  /**
   * Waits until the process has started, then evaluates. Kills the process when `signal` aborts, when the evaluation
   * exceeds a limit and does not end by itself, when it takes too much memory in all, and when the
   * process reports what cannot be.
   */
  run(assignment: Omit<Assignment, 'id'>, signal: AbortSignal, given?: RunnerRun): Promise<RunnerResult>;
  kill(): void;
  /** Resolves when the process has started, or has failed to. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
}

interface Evaluation extends Progress, Watched {
  tools: RunTools | undefined;
  /** Aborts when it ends. Only an evaluation with tools has one, because to abort takes 12 µs. */
  over: AbortController | undefined;
  organizationId: string;
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
  const [file, ...args] = starter.commandOf(runnerCommand(memoryMb, program, !starter.endsWithService));
  const child = spawn(file, args, {
    // In a process group of its own: a terminal's Ctrl-C ends the service, which waits for the run.
    ...{ env: { NODE_CHANNEL_FD: '3' }, cwd, detached: true },
    stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
  });
  let alive = true;
  let runs = -1;
  let startedMb = 0;
  let current: Evaluation | undefined;
  let isChannelBroken = false;

  const kill = (): void => {
    alive = false;
    child.kill('SIGKILL');
  };
  function resultOfDeath(evaluation: Evaluation, signal: NodeJS.Signals | null): RunnerResult {
    // On Linux, a process that dies before it has read its assignment breaks its channel.
    if (isChannelBroken && !evaluation.hasReported) return { outcome: 'unstarted' };
    return signal !== null && OUT_OF_MEMORY.has(signal)
      ? outOfMemoryResult(evaluation, memoryMb)
      : { outcome: 'interrupted' };
  }
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      log.error({ error }, 'a runner failed');
      kill();
    });
    child.once('exit', (code, signal) => {
      if (alive) log.warn({ pid: child.pid, code, signal, runs }, 'a runner died');
      alive = false;
    });
    // After `exit`, when the channel is read to its end.
    child.once('close', (_code, signal) => {
      current?.end(resultOfDeath(current, signal));
      resolve();
    });
  });
  if (child.pid === undefined) throw new Error('No runner can be started');
  const { pid } = child;
  giveSources(child.stdin!, program, log);
  const clock = openCpuClock(pid);
  void exited.then(clock.close);
  let cpu = { ms: 0, readAtMs: -Infinity };
  const readCpu = (): number => (cpu = { ms: clock.nowMs(), readAtMs: performance.now() }).ms;
  const channel = child.stdio[3] as Socket;
  channel.on('error', (error) => {
    isChannelBroken = true;
    log[alive ? 'warn' : 'debug']({ error, pid }, 'a runner could not be reached');
  });

  function onReport(line: string): void {
    if (!current) throw new InvalidReportError('a report without an evaluation');
    const report = readReport(line, current);
    current.hasReported = true;
    if (report.kind === 'finished') current.end({ ...report.result, cpuMs: current.cpuMs() });
    else if (report.kind === 'steps') current.steps = report.steps;
    else callTool(current, report);
  }
  /** Answers a call of a tool. An evaluation whose tools fail cannot go on. */
  function callTool(evaluation: Evaluation, { call, operation, input }: ToolCall): void {
    const { id, tools, over } = evaluation;
    evaluation.toolCalls = call;
    evaluation.unanswered += 1;
    if (!evaluation.isTimed) {
      evaluation.isTimed = true;
      // One long report after the other could keep every look of the timer from its limit of time.
      limitWatch.look();
      if (current !== evaluation) return;
    }
    tools!.call(operation, input, over!.signal).then(
      (answer) => {
        evaluation.unanswered -= 1;
        if (current === evaluation) channel.write(`${JSON.stringify({ id, call, answer } satisfies ToolAnswer)}\n`);
      },
      (error: unknown) => {
        if (current !== evaluation) return;
        log.warn({ error, pid }, 'a tool of a run failed');
        kill();
        evaluation.end({ outcome: 'interrupted' });
      },
    );
  }
  const onInvalidReport = (error: unknown): void => {
    log.error({ error, pid, runs }, 'a runner reported what cannot be, and is killed');
    kill();
    current?.end({ outcome: 'interrupted' });
  };
  const limitWatch = makeLimitWatch({ current: () => current, pid, memoryMb, kill });
  const read = reportReader({ current: () => current, isAlive: () => alive, schedule, onReport, onInvalidReport });
  channel.on('data', (piece: Buffer) => alive && read(piece));

  function evaluate(assignment: Omit<Assignment, 'id'>, signal: AbortSignal, tools?: RunTools): Promise<RunnerResult> {
    const id = ++runs;
    return new Promise<RunnerResult>((resolve) => {
      const assignedAtMs = performance.now();
      const startMs = assignedAtMs - cpu.readAtMs < REUSE_CPU_READING_MS ? cpu.ms : readCpu();
      let usedMs = 0;
      const cpuMs = (): number => (usedMs = Math.max(usedMs, Math.ceil(readCpu() - startMs)));
      const cancel = (): void => {
        const { steps } = evaluation;
        const result: RunnerResult = { outcome: 'cancelled', steps, cpuMs: cpuMs() };
        kill();
        evaluation.end(result);
      };
      const evaluation: Evaluation = (current = {
        id,
        hasReported: false,
        steps: 0,
        organizationId: assignment.organizationId,
        limits: assignment.limits,
        trace: assignment.trace,
        ...{ operations: assignment.operations, maxToolCalls: assignment.maxToolCalls },
        ...{ toolCalls: 0, unanswered: 0, tools, over: tools && new AbortController() },
        ...{ assignedAtMs, begunAtMs: undefined, isTimed: true },
        cpuMs,
        end(result) {
          current = undefined;
          signal.removeEventListener('abort', cancel);
          evaluation.over?.abort();
          resolve(result);
        },
      });
      signal.addEventListener('abort', cancel, { once: true });
      limitWatch.begin();
      if (alive && channel.writable) {
        channel.write(`${JSON.stringify({ id, ...assignment } satisfies Assignment)}\n`);
      } else {
        // It has died, or nothing reaches it any more.
        kill();
        evaluation.end({ outcome: 'unstarted' });
      }
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
    async run(assignment, signal, { onStart, tools } = {}) {
      await ready;
      const { type } = assignment.runtime;
      if (alive && !tried.has(type)) await tryFirst(type);
      if (!alive) return { outcome: 'unstarted' };
      if (signal.aborted) return { outcome: 'cancelled', steps: 0, cpuMs: 0 };
      onStart?.();
      return evaluate(assignment, signal, tools);
    },
  };
}
