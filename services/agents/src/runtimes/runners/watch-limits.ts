import type { EvaluationLimits, RunnerResult } from './evaluation.ts';
import { memoryMbOf } from './process-memory.ts';

/** Time for a child process to start, and to begin an evaluation. */
export const START_MS = 30_000;
/** Beyond `wallMs`, before the process is killed: where it can, the child ends an evaluation by itself at `wallMs`. */
const GRACE_MS = 500;
/** Beyond `memoryMb`, before the process is killed: twice what a process at the limit of its heap was seen to take. */
const BASE_OF_ALL_MEMORY_MB = 160;
/** V8 limits its heap alone, and a process that dies by itself takes its count of processor time with it. */
const LOOK_MS = 50;

/** What is looked at of an evaluation while it goes on. */
export interface Watched {
  /** When the process was given it, by performance.now(). */
  sinceMs: number;
  limits: EvaluationLimits;
  /** False from a long report until it is checked, because the runner has kept its limit of time. */
  isTimed: boolean;
  /** Whether the process has shown that it works on it. */
  hasReported: boolean;
  steps: number;
  cpuMs(): number;
  end(result: RunnerResult): void;
}

export const endOfMemory = ({ steps, cpuMs }: Watched, memoryMb: number): RunnerResult => ({
  outcome: 'failed',
  message: `The run takes more than ${memoryMb} MB of memory`,
  steps,
  cpuMs: cpuMs(),
});

/**
 * Kills a process whose evaluation exceeds its limit of time or takes too much memory outside of V8's heap. One timer
 * serves all evaluations that follow each other, because timers for each would cost a tenth of a small one.
 * @param given.evaluation what the process works on
 * @returns to be called when an evaluation begins
 */
export function watchLimits({
  evaluation,
  pid,
  memoryMb,
  kill,
}: {
  evaluation(): Watched | undefined;
  pid: number;
  memoryMb: number;
  kill(): void;
}): () => void {
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    const now = evaluation();
    if (!now) {
      clearInterval(timer);
      timer = undefined;
      return;
    }
    const cpuMs = now.cpuMs();
    const lateMs = now.isTimed ? performance.now() - now.sinceMs - now.limits.wallMs - GRACE_MS : 0;
    // On a machine that has no time for it, the process may not even have read its assignment.
    const hasBegun = now.hasReported || cpuMs > 0;
    if (lateMs > (hasBegun ? 0 : START_MS)) {
      kill();
      now.end(hasBegun ? { outcome: 'timed_out', steps: now.steps, cpuMs } : { outcome: 'unstarted' });
    } else if (memoryMbOf(pid) > memoryMb + BASE_OF_ALL_MEMORY_MB) {
      kill();
      now.end(endOfMemory(now, memoryMb));
    }
  }

  return () => void (timer ??= setInterval(look, LOOK_MS));
}
