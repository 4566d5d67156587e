import type jsonata from 'jsonata';
import type { RE2JS } from 're2js';
import type { EvaluationLimits, EvaluationResult, Failure } from '../runners/evaluation.ts';
import type { MakeJsonText } from './json-text.ts';
import type { Compiled, KeepExpressions } from './kept-expressions.ts';
import type { MakePatterns, Patterns } from './patterns.ts';
import type { FindUnknownName } from './unknown-names.ts';

/** JSONata inside of the realm (language.ts). */
export interface Language {
  jsonata: typeof jsonata;
  isFunction(value: unknown): boolean;
  /** The names of the built-in functions. */
  functionNames: readonly string[];
  /**
   * @param given.work called with the number of values that a built-in function is about to visit; it throws at a limit
   * @param given.RegExp matches what JSONata makes of signatures and of pictures of dates
   */
  bound(given: { work(values: number): void; RegExp: Patterns['LinearRegExp'] }): void;
}

/**
 * What a realm gets from outside. Only texts and numbers pass, so that no object of another realm is in reach. Node
 * makes texts above a million characters outside of V8's heap, where its limit does not count them, so every text that
 * passes into a realm is shorter.
 */
export interface Host {
  /** REPORT_STEPS. */
  reportSteps: number;
  /** Called at every report, synchronously, so that it is called in an endless loop. */
  onSteps(steps: number): void;
  byteLength(text: string): number;
  /** For texts of which the result has at most MAX_BASE64_CHARACTERS. */
  base64Of(binary: string): string;
  binaryOf(base64: string): string;
  /** A sentence about what is at a place of an output, a JSON list of names. */
  invalidOutputAt(place: string, message: string): string;
  /** A regular expression for RE2, after "="; or why there is none. */
  inRe2(source: string, flags: string): string;
}

export interface Evaluator {
  /** @returns why the source cannot be evaluated */
  check(source: string): string | undefined;
  prepare(source: string, argsText: string, limits: EvaluationLimits): void;
  /** Evaluates what was prepared. */
  run(): Promise<void>;
  /** To be called when nothing is left to be done: a branch may go on after the evaluation has failed. */
  result(): EvaluationResult;
}

/**
 * Evaluates JSONata expressions over JSON text inside of a realm. The realm compiles the text of this function, so it
 * refers to nothing outside of itself.
 * @param given.parseJson that of platform; it and the other functions are compiled in the realm
 * @param given.loadRe2 evaluates RE2JS in the realm
 */
export function makeEvaluator({
  language: { jsonata, isFunction, functionNames, bound },
  parseJson,
  keepExpressions,
  makePatterns,
  makeJsonText,
  findUnknownName,
  loadRe2,
  host,
}: {
  language: Language;
  parseJson(text: string): unknown;
  keepExpressions: KeepExpressions;
  makePatterns: MakePatterns;
  makeJsonText: MakeJsonText;
  findUnknownName: FindUnknownName;
  loadRe2(): typeof RE2JS;
  host: Host;
}): Evaluator {
  const MAX_SOURCE_CHARACTERS = 65_536;
  const MAX_STACK_DEPTH = 1_000;
  const MAX_SEQUENCE_LENGTH = 100_000;
  const MAX_PAD_CHARACTERS = 100_000;
  const MAX_BASE64_CHARACTERS = 500_000;
  const MAX_MESSAGE_CHARACTERS = 300;
  const STACK_FOR_REPORT = 200;
  /** To say that a pattern is nested too deeply is itself less deep. */
  const STACK_FOR_PATTERN = 200;
  /** Of a syntax tree: seen to be 45 to 95 bytes of heap. */
  const BYTES_PER_NODE = 80;
  /** Values that built-in functions visit for one step. */
  const VALUES_PER_STEP = 100;

  /** The agent itself is at fault, or its output; clients may read the message. */
  class ExpressionError {
    readonly message: string;
    readonly outcome: Failure;
    constructor(message: string, outcome: Failure = 'failed') {
      this.message = message;
      this.outcome = outcome;
    }
  }

  let limits: EvaluationLimits = { wallMs: Infinity, maxSteps: Infinity, outputBytes: Infinity };
  let deadline = Infinity;
  let [steps, values] = [0, 0];
  let late = false;

  /** Throws RangeError here if the host's functions would, in the middle of what they do. */
  function needStack(frames: number): void {
    if (frames > 0) needStack(frames - 1);
  }

  function step(): void {
    if (steps === limits.maxSteps) throw new ExpressionError(`The expression takes more than ${limits.maxSteps} steps`);
    if (++steps % host.reportSteps === 0) {
      needStack(STACK_FOR_REPORT);
      host.onSteps(steps);
    }
    late ||= Date.now() > deadline;
    if (late) throw new ExpressionError('The expression takes too long');
  }

  function work(count: number): void {
    for (values += count; values >= VALUES_PER_STEP; values -= VALUES_PER_STEP) step();
  }

  const patterns = makePatterns({
    loadRe2,
    inRe2(source, flags) {
      needStack(STACK_FOR_PATTERN);
      return host.inRe2(source, flags);
    },
    onMatch: step,
    fail(message) {
      throw new ExpressionError(message);
    },
  });
  bound({ work, RegExp: patterns.LinearRegExp });

  function pad(text: string | undefined, width: number, filler?: string): string | undefined {
    if (text === undefined) return undefined;
    if (!(Math.abs(width) <= MAX_PAD_CHARACTERS))
      throw new ExpressionError(`$pad makes at most ${MAX_PAD_CHARACTERS} characters`);
    const missing = Math.max(0, Math.abs(width) - [...text].length);
    const padding = [...(filler || ' ').repeat(missing).slice(0, 2 * missing)].slice(0, missing).join('');
    return width < 0 ? padding + text : text + padding;
  }

  const base64 =
    (convert: (text: string) => string, maxCharacters: number) =>
    (text?: string): string | undefined => {
      if (!text) return text;
      if (text.length > maxCharacters)
        throw new ExpressionError(`Base64 of at most ${MAX_BASE64_CHARACTERS} characters is written and read`);
      return convert(text);
    };

  const jsonText = makeJsonText({
    byteLength: host.byteLength,
    isFunction,
    fail(message) {
      throw new ExpressionError(message);
    },
    refuse(place, message) {
      throw new ExpressionError(host.invalidOutputAt(place, message), 'output_invalid');
    },
  });

  /**
   * The message that clients may read. JSONata's own errors have a code; `$error` (D3137) and `$assert` (D3141) carry
   * the text of the agent's author; the message of any other error stays inside.
   */
  function publicMessage(error: unknown): string {
    if (error instanceof ExpressionError) return error.message;
    if (error instanceof RangeError)
      return 'The expression exceeds a limit of the runtime, such as the longest text or the deepest recursion';
    const { code, message, position } = (error ?? {}) as { code?: unknown; message?: unknown; position?: unknown };
    if (typeof code !== 'string' || !/^[STD]\d{4}$/.test(code) || typeof message !== 'string')
      return 'The expression failed';
    const short = message.length > MAX_MESSAGE_CHARACTERS ? `${message.slice(0, MAX_MESSAGE_CHARACTERS)}…` : message;
    if (code === 'D3137' || code === 'D3141') return short;
    return short + (typeof position === 'number' ? ` (${code} at character ${position})` : ` (${code})`);
  }

  /** All objects of a syntax tree. */
  function nodesOf(root: unknown): Set<object> {
    const nodes = new Set<object>();
    for (const open = [root]; open.length > 0;) {
      const node = open.pop();
      if (typeof node !== 'object' || node === null || nodes.has(node)) continue;
      nodes.add(node);
      for (const member of Object.values(node)) open.push(member);
    }
    return nodes;
  }

  /** Throws for a regular expression in the syntax tree that RE2 cannot match, or too much of them. */
  function checkPatterns(nodes: Iterable<object>): void {
    let characters = 0;
    for (const node of nodes) {
      if (!(node instanceof RegExp)) continue;
      characters += node.source.length;
      if (characters > patterns.maxCharacters)
        throw new ExpressionError(`Regular expressions have at most ${patterns.maxCharacters} characters together`);
      patterns.compile(node);
    }
  }

  /** Every evaluation has a frame of its own for variables, and the syntax tree is frozen: nothing of it remains. */
  function compile(source: string): Compiled {
    const expression = jsonata(source, {
      stack: MAX_STACK_DEPTH,
      sequence: MAX_SEQUENCE_LENGTH,
      RegexEngine: patterns.LinearRegExp as unknown as RegExpConstructor,
    });
    let treeBytes = 0;
    for (const node of nodesOf(expression.ast())) {
      Object.freeze(node);
      treeBytes += BYTES_PER_NODE;
      for (const member of Object.values(node)) if (typeof member === 'string') treeBytes += 2 * member.length;
    }
    expression.assign(Symbol.for('jsonata.__evaluate_entry') as unknown as string, step);
    expression.registerFunction('pad', pad, '<s-ns?:s>');
    expression.registerFunction('eval', () => {
      throw new ExpressionError('$eval is not available');
    });
    expression.registerFunction('base64encode', base64(host.base64Of, MAX_BASE64_CHARACTERS * (3 / 4)), '<s-:s>');
    expression.registerFunction('base64decode', base64(host.binaryOf, MAX_BASE64_CHARACTERS), '<s-:s>');
    return { expression, treeBytes };
  }
  const expressionOf = keepExpressions(compile);

  let prepared: [source: string, argsText: string];
  let result: EvaluationResult | undefined;

  async function run(): Promise<void> {
    const [source, argsText] = prepared;
    try {
      const output: unknown = await expressionOf(source).evaluate(parseJson(argsText));
      if (output === undefined) throw new ExpressionError('The expression produced no output');
      result = { outcome: 'succeeded', outputText: jsonText(output, limits.outputBytes), steps };
    } catch (error) {
      const outcome = error instanceof ExpressionError ? error.outcome : 'failed';
      result = late ? { outcome: 'timed_out', steps } : { outcome, message: publicMessage(error), steps };
    }
  }

  return {
    check(source) {
      if (source.length > MAX_SOURCE_CHARACTERS) return `must have at most ${MAX_SOURCE_CHARACTERS} characters`;
      try {
        const nodes = nodesOf(jsonata(source).ast());
        checkPatterns(nodes);
        return findUnknownName(nodes, new Set(functionNames));
      } catch (error) {
        return error instanceof RangeError ? 'The expression is nested too deeply' : publicMessage(error);
      }
    },
    prepare(source, argsText, { wallMs, maxSteps, outputBytes }) {
      prepared = [source, argsText];
      limits = { wallMs, maxSteps, outputBytes };
      deadline = Date.now() + wallMs;
      result = undefined;
      late = false;
      steps = values = 0;
    },
    run,
    result() {
      const ended = result ?? { outcome: 'failed', message: 'The expression waits for something that never happens' };
      prepared = ['', ''];
      result = undefined;
      patterns.forget();
      return { ...ended, steps };
    },
  };
}
