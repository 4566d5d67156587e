import jsonata from 'jsonata';
import type { Violation } from 'platform/errors.ts';
import type { RunnerAnswer, RunnerTask } from './evaluation.ts';
import { LinearRegExp } from './linear-reg-exp.ts';

const MAX_SOURCE_LENGTH = 32_768;
const MAX_DEPTH = 500;
const MAX_SEQUENCE = 1_000_000;
/** JSONata calls what is bound here once per evaluated node. */
const ENTRY_HOOK = Symbol.for('jsonata.__evaluate_entry');

/** Why a source cannot be an expression: at most one violation, with the place. Parses; evaluates nothing. */
export function checkExpression(source: string): Violation[] {
  if (source.length > MAX_SOURCE_LENGTH) return [{ path: '', message: `is longer than ${MAX_SOURCE_LENGTH} characters` }];
  try {
    for (const pattern of patternsIn(jsonata(source).ast())) new LinearRegExp(pattern);
    return [];
  } catch (error) {
    return [{ path: '', message: messageOf(error) }];
  }
}

function patternsIn(node: unknown): RegExp[] {
  if (node instanceof RegExp) return [node];
  return typeof node === 'object' && node !== null ? Object.values(node).flatMap(patternsIn) : [];
}

/** JSONata's code for an evaluation past its timeout. */
const TIMED_OUT = 'D1012';

class StepLimit extends Error {}

/**
 * Evaluates one expression, in a runner process only: nothing here stops a single built-in function that never ends or eats
 * all memory; the process's own limits and the pool's kill do.
 * @param onStep called with the steps so far
 */
export async function evaluateExpression({ source, argsText, limits }: RunnerTask, onStep: (steps: number) => void): Promise<RunnerAnswer> {
  let steps = 0;
  try {
    const expression = jsonata(source, { timeout: limits.wallMs, stack: MAX_DEPTH, sequence: MAX_SEQUENCE, RegexEngine: LinearRegExp as unknown as RegExpConstructor });
    expression.assign(ENTRY_HOOK as unknown as string, () => {
      onStep(++steps);
      if (steps > limits.maxSteps) throw new StepLimit(`The expression took more than ${limits.maxSteps} steps`);
    });
    const output: unknown = await expression.evaluate(JSON.parse(argsText));
    const outputText = isFunction(output) ? undefined : JSON.stringify(output);
    if (outputText === undefined) return { message: 'The expression has no result', steps };
    if (Buffer.byteLength(outputText) > limits.outputBytes) return { message: `The output is larger than ${limits.outputBytes} bytes`, steps };
    return { outputText, steps };
  } catch (error) {
    return (error as { code?: string }).code === TIMED_OUT ? { timedOut: true, steps } : { message: messageOf(error), steps };
  }
}

/** A function of JavaScript, of JSONata's library or of the expression. */
const isFunction = (value: unknown): boolean =>
  typeof value === 'function' || (typeof value === 'object' && value !== null && ('_jsonata_lambda' in value || '_jsonata_function' in value));

const MAX_MESSAGE_LENGTH = 500;

/** JSONata throws plain objects with a message; its engine's own errors carry no secret of the platform, but cut them short. */
function messageOf(error: unknown): string {
  if (error instanceof RangeError) return 'The expression is nested too deeply or its result is too large';
  const { message } = error as { message?: unknown };
  return (typeof message === 'string' && message !== '' ? message : 'The expression failed').slice(0, MAX_MESSAGE_LENGTH);
}
