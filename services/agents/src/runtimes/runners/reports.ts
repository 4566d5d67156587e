import {
  isTrace,
  MAX_MESSAGE_CHARACTERS,
  REPORT_STEPS,
  type EvaluationLimits,
  type EvaluationResult,
} from './evaluation.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { InvalidOutputError, readOutput } from '../output.ts';
import type { Report } from './runner-child.ts';
import { MAX_INPUT_BYTES, REFUSED_CALLS, TOOL_CALLS_AT_ONCE, type ToolCall } from './tool-calls.ts';

/** The most bytes of a report without output and trace. */
export const REPORT_BYTES = 8_192;
/** Of a trace as JSON text, each of its characters escaped. */
export const TRACE_BYTES = 131_072;

/** A runner reported what no sound runner reports. It is not believed any more. */
export class InvalidReportError extends Error {}

/** What is known of the evaluation that a runner works on. */
export interface Progress {
  id: number;
  /** As last reported. */
  steps: number;
  limits: EvaluationLimits;
  /** Whether a trace was asked for. */
  trace: boolean;
  /** Names of the operations that its tools have. */
  operations: readonly string[];
  maxToolCalls: number;
  /** Calls of its tools so far, and those of them that are not answered. */
  toolCalls: number;
  unanswered: number;
}

/** The longest report: in JSON, an output at most doubles, because quotes and backslashes are escaped; so an input. */
export function maxReportBytes(progress: Progress | undefined): number {
  if (!progress) return REPORT_BYTES;
  const { limits, trace, operations } = progress;
  const last = 2 * limits.outputBytes + (trace ? TRACE_BYTES : 0);
  return REPORT_BYTES + Math.max(last, operations.length > 0 ? 2 * MAX_INPUT_BYTES : 0);
}

/**
 * Reads a report and checks it against what is known: a runner evaluates code that nobody has reviewed, so it may say
 * anything. What is returned is made anew from checked values.
 * @param text JSON
 * @throws InvalidReportError
 */
export function readReport(text: string, progress: Progress): Report {
  const report = membersOf(valueOf(text));
  if (text.length > REPORT_BYTES && report.kind !== 'finished' && report.kind !== 'tool')
    throw new InvalidReportError('a long report that is neither the last one nor a call of a tool');
  const { id } = progress;
  if (report.id !== id) throw new InvalidReportError('a report about another evaluation');
  if (report.kind === 'steps')
    return { kind: 'steps', id, steps: stepsOf(report, progress.steps + REPORT_STEPS, progress) };
  if (report.kind === 'tool') return { kind: 'tool', id, ...toolCallOf(report, progress) };
  if (report.kind === 'finished') return { kind: 'finished', id, result: resultOf(membersOf(report.result), progress) };
  throw new InvalidReportError('an unknown kind of report');
}

function resultOf(result: Record<string, unknown>, progress: Progress): EvaluationResult {
  const steps = stepsOf(result, progress.steps, progress);
  if (result.outcome === 'timed_out') return { outcome: 'timed_out', steps };
  const { outcome } = result;
  if (outcome === 'failed' || outcome === 'output_invalid') {
    if (typeof result.message !== 'string' || result.message.length > MAX_MESSAGE_CHARACTERS)
      throw new InvalidReportError('a message that is no text, or too long');
    return { outcome, message: result.message, steps, ...traceOf(result, progress) };
  }
  if (outcome !== 'succeeded') throw new InvalidReportError('an unknown outcome');
  return { ...outputOf(result, progress.limits), steps, ...traceOf(result, progress) };
}

function toolCallOf({ call, operation, input }: Record<string, unknown>, progress: Progress): ToolCall {
  const { operations, maxToolCalls, toolCalls, unanswered } = progress;
  if (call !== toolCalls + 1 || unanswered >= TOOL_CALLS_AT_ONCE)
    throw new InvalidReportError('a call of a tool that is out of turn');
  if (call > maxToolCalls + REFUSED_CALLS) throw new InvalidReportError('more calls of tools than a script can make');
  if (typeof operation !== 'string' || !operations.includes(operation))
    throw new InvalidReportError('a call of a tool that the agent does not have');
  if (typeof input !== 'string' || Buffer.byteLength(input) > MAX_INPUT_BYTES)
    throw new InvalidReportError('an input that is no text, or too long');
  return { call, operation, input };
}

function traceOf({ trace }: Record<string, unknown>, progress: Progress): { trace?: string[] } {
  if (!progress.trace || trace === undefined) return {};
  if (!isTrace(trace)) throw new InvalidReportError('a trace that is no list of texts, or too long');
  return { trace };
}

function stepsOf({ steps }: Record<string, unknown>, least: number, { limits }: Progress): number {
  if (typeof steps !== 'number' || !Number.isSafeInteger(steps) || steps < least || steps > limits.maxSteps)
    throw new InvalidReportError('a number of steps that cannot be');
  return steps;
}

/** Whether what a program gave can be an output is decided here, because a runner might say that it can. */
function outputOf({ outputText: given }: Record<string, unknown>, { outputBytes }: EvaluationLimits) {
  if (typeof given !== 'string' || Buffer.byteLength(given) > outputBytes)
    throw new InvalidReportError('an output that is no text, or too long');
  let outputText: string;
  try {
    outputText = readOutput(given).toString();
  } catch (error) {
    if (!(error instanceof InvalidOutputError)) throw new InvalidReportError('an output that is not JSON');
    return { outcome: 'output_invalid', message: error.message } as const;
  }
  if (outputText !== given) throw new InvalidReportError('an output with spaces or needless escapes');
  return { outcome: 'succeeded', outputText } as const;
}

function valueOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new InvalidReportError('not JSON');
  }
}

function membersOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new InvalidReportError('not an object');
  return value as Record<string, unknown>;
}
