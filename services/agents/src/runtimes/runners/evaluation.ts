import type { RunLimits, RuntimeDefinition } from '../rules.ts';

/** A runner counts steps exactly, and reports them no more often than this. */
export const REPORT_STEPS = 10_000;
/** Texts of a trace that are kept as messages, and characters of one of them. */
export const [MAX_MESSAGES, MAX_TEXT_CHARACTERS] = [100, 2_000] as const;
/** Of the message of an evaluation that failed. A runner that reports a longer one is not believed. */
export const MAX_MESSAGE_CHARACTERS = 1_000;

/** The member `runtime` of an agent whose program is a text. */
export interface SourceDefinition extends RuntimeDefinition {
  source: string;
}

/** Without `memoryMb`, which whatever the evaluation runs in keeps. */
export type EvaluationLimits = Omit<RunLimits, 'memoryMb'>;

/** How an evaluation failed: by its program, or by what that gave as its output. */
export type Failure = 'failed' | 'output_invalid';

/**
 * How an evaluation ended, as its runner says. The message may be shown to the caller; `trace` has what the program
 * wrote, if its definition asks for that.
 */
export type EvaluationResult =
  | { outcome: 'succeeded'; outputText: string; steps: number; trace?: string[] }
  | { outcome: Failure; message: string; steps: number; trace?: string[] }
  | { outcome: 'timed_out'; steps: number };

/** Whether this can be a trace. A runner that reports another one is not believed. */
export const isTrace = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length <= MAX_MESSAGES && value.every((text) => typeof text === 'string');

/** `cpuMs` is the processor time as the parent measured it, in begun milliseconds. */
export type RunnerResult =
  | (EvaluationResult & { cpuMs: number })
  | { outcome: 'cancelled'; steps: number; cpuMs: number }
  | { outcome: 'interrupted' }
  /** The process died before it began the evaluation, so another process may evaluate it. */
  | { outcome: 'unstarted' };
