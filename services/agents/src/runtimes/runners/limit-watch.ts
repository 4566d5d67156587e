import { outsideTraces } from 'platform/telemetry/traces.ts';
import type { EvaluationLimits, RunnerResult } from './evaluation.ts';
import { memoryMbOf } from './process-memory.ts';

/** The limit of the first evaluation, with the start of the process; and how long another one may wait to begin. */
export const START_MS = 30_000;
/** Beyond `wallMs`, before the process is killed: where it can, the child ends an evaluation by itself at `wallMs`. */
const GRACE_MS = 500;
/** Beyond `memoryMb`, before the process is killed: twice what a process at the limit of its heap was seen to take. */
const BASE_OF_ALL_MEMORY_MB = 160;
/**
 * How often time, memory and processor time are looked at: V8 limits its heap alone, and a process that dies takes its
 * count of processor time with it.
 */
const LOOK_MS = 50;

/** A process that has not read its assignment may still use so much, because it ends the evaluation before. */
const CPU_OF_NOTHING_MS = 1;

/** What is looked at of an evaluation while it goes on. */
export interface Watched {
  /** When the process was given it, by performance.now(). */
  assignedAtMs: number;
  /**
   * When it was first seen that the process works on it. Its limit of time counts from here: before, this service or
   * the process may have had no time.
   */
  begunAtMs: number | undefined;
  limits: EvaluationLimits;
  /** False while a long report waits to be checked: the runner was in time. */
  isTimed: boolean;
  /** Whether a report about it was accepted. */
  hasReported: boolean;
  steps: number;
  cpuMs(): number;
  end(result: RunnerResult): void;
}

export const outOfMemoryResult = ({ steps, cpuMs }: Watched, memoryMb: number): RunnerResult => ({
  outcome: 'failed',
  message: `The run takes more than ${memoryMb} MB of memory`,
  steps,
  cpuMs: cpuMs(),
});

/**
 * Kills a process whose evaluation exceeds its limit of time, or that takes too much memory in all, and reads its
 * processor time meanwhile. One timer serves all evaluations that follow each other (ADR 28).
 * @param given.current what the process works on
 * @returns `begin` is called for each evaluation; `look` looks at once
 */
export function makeLimitWatch({
  current,
  pid,
  memoryMb,
  kill,
}: {
  current(): Watched | undefined;
  pid: number;
  memoryMb: number;
  kill(): void;
}): { begin(): void; look(): void } {
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    const evaluation = current();
    if (!evaluation) {
      clearInterval(timer);
      timer = undefined;
      return;
    }
    const cpuMs = evaluation.cpuMs();
    if (evaluation.hasReported || cpuMs > CPU_OF_NOTHING_MS) evaluation.begunAtMs ??= performance.now();
    const { assignedAtMs, begunAtMs, isTimed, limits, steps } = evaluation;
    const limitMs = limits.wallMs + GRACE_MS;
    if (isTimed && performance.now() > (begunAtMs ?? assignedAtMs + START_MS) + limitMs) {
      kill();
      evaluation.end(begunAtMs === undefined ? { outcome: 'unstarted' } : { outcome: 'timed_out', steps, cpuMs });
    } else if (memoryMbOf(pid) > memoryMb + BASE_OF_ALL_MEMORY_MB) {
      kill();
      evaluation.end(outOfMemoryResult(evaluation, memoryMb));
    }
  }

  return {
    look,
    begin() {
      timer ??= setInterval(() => outsideTraces(look), LOOK_MS);
    },
  };
}
