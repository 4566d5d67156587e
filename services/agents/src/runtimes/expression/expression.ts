import jsonata from 'jsonata';
import { RE2JS } from 're2js';
import type { Violation } from 'platform/core/errors.ts';

const MAX_SOURCE_CHARACTERS = 65_536;
const MAX_STACK_DEPTH = 1_000;
const MAX_SEQUENCE_LENGTH = 100_000;
const MAX_PAD_CHARACTERS = 100_000;
const MAX_OUTPUT_LEVELS = 64;
const MAX_MESSAGE_CHARACTERS = 300;
const REPORT_STEPS = 10_000;

export interface ExpressionLimits {
  wallMs: number;
  maxSteps: number;
  outputBytes: number;
}
export type ExpressionResult =
  | { outcome: 'succeeded'; outputText: string; steps: number }
  | { outcome: 'failed'; message: string; steps: number }
  | { outcome: 'timed_out'; steps: number };

/** The agent itself is at fault; clients may read the message. */
class ExpressionError extends Error {}

/**
 * The message that clients may read. JSONata's own errors have a code; `$error` (D3137) and `$assert` (D3141) carry
 * the text of the agent's author; the message of any other error stays inside.
 */
function publicMessage(error: unknown): string {
  if (error instanceof ExpressionError) return error.message;
  const { code, message, position } = error as { code?: unknown; message?: unknown; position?: unknown };
  if (typeof code !== 'string' || !/^[STD]\d{4}$/.test(code) || typeof message !== 'string')
    return 'The expression failed';
  const short = message.length > MAX_MESSAGE_CHARACTERS ? `${message.slice(0, MAX_MESSAGE_CHARACTERS)}…` : message;
  if (code === 'D3137' || code === 'D3141') return short;
  const where = typeof position === 'number' ? ` (${code} at character ${position})` : ` (${code})`;
  return short + where;
}

/** Checks the source of an expression before it is stored. Paths of violations are empty, as the source is one text. */
export function checkExpression(source: string): Violation[] {
  if (source.length > MAX_SOURCE_CHARACTERS)
    return [{ path: '', message: `must have at most ${MAX_SOURCE_CHARACTERS} characters` }];
  try {
    checkPatterns(jsonata(source).ast());
    return [];
  } catch (error) {
    return [
      { path: '', message: error instanceof RangeError ? 'The expression is nested too deeply' : publicMessage(error) },
    ];
  }
}

/** Throws for a regular expression anywhere in the syntax tree that RE2 cannot match. */
function checkPatterns(root: unknown): void {
  const seen = new Set<unknown>();
  const open: unknown[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node instanceof RegExp) compilePattern(node);
    else if (typeof node === 'object' && node !== null && !seen.has(node)) {
      seen.add(node);
      open.push(...Object.values(node).filter((member) => member !== undefined));
    }
  }
}

/**
 * Evaluates a JSONata expression over JSON text. It ends by itself at its limits wherever JSONata checks them. Within
 * one built-in function (a huge join, a costly signature) JSONata checks none, and only killing the process helps; so
 * this runs in a process that can be killed.
 * @param onSteps called with the number of steps every 10,000 steps, synchronously, so that it is called in an endless
 * loop
 */
export async function evaluateExpression(
  source: string,
  argsText: string,
  limits: ExpressionLimits,
  onSteps: (steps: number) => void,
): Promise<ExpressionResult> {
  let steps = 0;
  try {
    const expression = jsonata(source, {
      timeout: limits.wallMs,
      stack: MAX_STACK_DEPTH,
      sequence: MAX_SEQUENCE_LENGTH,
      RegexEngine: LinearRegExp as unknown as RegExpConstructor,
    });
    expression.assign(Symbol.for('jsonata.__evaluate_entry') as unknown as string, () => {
      if (steps === limits.maxSteps)
        throw new ExpressionError(`The expression takes more than ${limits.maxSteps} steps`);
      if (++steps % REPORT_STEPS === 0) onSteps(steps);
    });
    expression.registerFunction('pad', pad, '<s-ns?:s>');
    expression.registerFunction('eval', () => {
      throw new ExpressionError('$eval is not available');
    });
    const output = await expression.evaluate(JSON.parse(argsText));
    if (output === undefined) throw new ExpressionError('The expression produced no output');
    return { outcome: 'succeeded', outputText: jsonText(output, limits.outputBytes), steps };
  } catch (error) {
    if ((error as { code?: unknown }).code === 'D1012') return { outcome: 'timed_out', steps };
    return {
      outcome: 'failed',
      message:
        error instanceof RangeError
          ? 'The expression exceeds a limit of the runtime, such as the longest text or the deepest recursion'
          : publicMessage(error),
      steps,
    };
  }
}

function pad(text: string | undefined, width: number, filler = ' '): string | undefined {
  if (text === undefined) return undefined;
  if (Math.abs(width) > MAX_PAD_CHARACTERS)
    throw new ExpressionError(`$pad makes at most ${MAX_PAD_CHARACTERS} characters`);
  const missing = Math.max(0, Math.abs(width) - [...text].length);
  const padding = [...(filler || ' ').repeat(missing).slice(0, 2 * missing)].slice(0, missing).join('');
  return width < 0 ? padding + text : text + padding;
}

/**
 * JSON text of at most `maxBytes`. Writing stops at the limit, because an output that holds one array many times is
 * small in memory and huge as text.
 * @throws ExpressionError
 */
function jsonText(output: unknown, maxBytes: number): string {
  const parts: string[] = [];
  let bytes = 0;
  write(output, 0);
  return parts.join('');

  function add(text: string): void {
    bytes += Buffer.byteLength(text);
    if (bytes > maxBytes) throw new ExpressionError(`The output is larger than ${maxBytes} bytes`);
    parts.push(text);
  }

  function write(value: unknown, level: number): void {
    if (level > MAX_OUTPUT_LEVELS) throw new ExpressionError(`The output has more than ${MAX_OUTPUT_LEVELS} levels`);
    if (value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)))
      return add(String(value));
    if (typeof value === 'string') return add(value.length > maxBytes ? value : JSON.stringify(value));
    if (Array.isArray(value)) {
      value.forEach((item: unknown, i) => {
        add(i === 0 ? '[' : ',');
        write(item === undefined ? null : item, level + 1);
      });
      return add(value.length === 0 ? '[]' : ']');
    }
    if (typeof value !== 'object' || '_jsonata_lambda' in value || '_jsonata_function' in value)
      throw new ExpressionError('The output holds something that is not JSON, such as a function');
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    members.forEach(([name, member], i) => {
      add(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`);
      write(member, level + 1);
    });
    add(members.length === 0 ? '{}' : '}');
  }
}

const patterns = new Map<string, RE2JS>();

/**
 * Compiles a regular expression for RE2, which takes time linear in the text.
 * @throws ExpressionError for look-around and back-references, which RE2 does not have
 */
function compilePattern({ source, flags }: RegExp): RE2JS {
  const key = `${flags}/${source}`;
  let pattern = patterns.get(key);
  if (!pattern) {
    try {
      pattern = RE2JS.compile(
        RE2JS.translateRegExp(source),
        (flags.includes('i') ? RE2JS.CASE_INSENSITIVE : 0) | (flags.includes('m') ? RE2JS.MULTILINE : 0),
      );
    } catch {
      throw new ExpressionError(
        'A regular expression cannot be matched in linear time (no look-around, no back-references)',
      );
    }
    if (patterns.size === 100) patterns.clear();
    patterns.set(key, pattern);
  }
  return pattern;
}

/** The members of RegExp that JSONata uses, on RE2. */
class LinearRegExp {
  readonly #pattern: RE2JS;
  lastIndex = 0;
  constructor(pattern: RegExp) {
    this.#pattern = compilePattern(pattern);
  }

  exec(text: string): RegExpExecArray | null {
    const matcher = this.#pattern.matcher(text);
    if (!matcher.find(this.lastIndex)) {
      this.lastIndex = 0;
      return null;
    }
    this.lastIndex = matcher.end();
    const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, i) => matcher.group(i) ?? undefined) as [
      string,
      ...string[],
    ];
    return Object.assign(groups, { index: matcher.start(), input: text });
  }

  test(text: string): boolean {
    return this.exec(text) !== null;
  }
}
