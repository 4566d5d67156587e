import type jsonata from 'jsonata';
import type { RE2JS } from 're2js';

export interface ExpressionLimits {
  wallMs: number;
  maxSteps: number;
  outputBytes: number;
}
export type ExpressionResult =
  | { outcome: 'succeeded'; outputText: string; steps: number }
  | { outcome: 'failed'; message: string; steps: number }
  | { outcome: 'timed_out'; steps: number };

/** JSONata inside of the realm (language.ts). */
export interface Language {
  jsonata: typeof jsonata;
  isFunction(value: unknown): boolean;
}

/** What a realm gets from outside. Only texts and numbers pass, so that no object of another realm is in reach. */
export interface Host {
  /** Called every 10,000 steps, synchronously, so that it is called in an endless loop. */
  onSteps(steps: number): void;
  byteLength(text: string): number;
  base64Of(binary: string): string;
  binaryOf(base64: string): string;
}

export interface Evaluator {
  /** @returns why the source cannot be evaluated */
  check(source: string): string | undefined;
  prepare(source: string, argsText: string, limits: ExpressionLimits): void;
  /** Evaluates what was prepared. */
  run(): Promise<void>;
  /** Undefined if the evaluation waits for something that never happens. */
  result(): ExpressionResult | undefined;
}

/**
 * Evaluates JSONata expressions over JSON text inside of a realm. The realm compiles the text of this function, so it
 * refers to nothing outside of itself.
 * @param parseJson that of platform, compiled in the realm
 * @param loadRe2 evaluates RE2JS in the realm
 */
export function makeEvaluator(
  { jsonata, isFunction }: Language,
  parseJson: (text: string) => unknown,
  loadRe2: () => typeof RE2JS,
  host: Host,
): Evaluator {
  const MAX_SOURCE_CHARACTERS = 65_536;
  const MAX_STACK_DEPTH = 1_000;
  const MAX_SEQUENCE_LENGTH = 100_000;
  const MAX_PAD_CHARACTERS = 100_000;
  const MAX_OUTPUT_LEVELS = 64;
  const MAX_MESSAGE_CHARACTERS = 300;
  const REPORT_STEPS = 10_000;

  /** The agent itself is at fault; clients may read the message. */
  class ExpressionError {
    readonly message: string;
    constructor(message: string) {
      this.message = message;
    }
  }

  const patterns = new Map<string, RE2JS>();

  /** RE2 takes time linear in the text. It has no look-around and no back-references. */
  function compilePattern({ source, flags }: RegExp): RE2JS {
    const key = `${flags}/${source}`;
    let pattern = patterns.get(key);
    if (!pattern) {
      const re2 = loadRe2();
      try {
        pattern = re2.compile(
          re2.translateRegExp(source),
          (flags.includes('i') ? re2.CASE_INSENSITIVE : 0) | (flags.includes('m') ? re2.MULTILINE : 0),
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

    exec(text: unknown): RegExpExecArray | null {
      if (typeof text !== 'string') throw new ExpressionError('A regular expression matches only strings');
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
  }

  function pad(text: string | undefined, width: number, filler = ' '): string | undefined {
    if (text === undefined) return undefined;
    if (!(Math.abs(width) <= MAX_PAD_CHARACTERS))
      throw new ExpressionError(`$pad makes at most ${MAX_PAD_CHARACTERS} characters`);
    const missing = Math.max(0, Math.abs(width) - [...text].length);
    const padding = [...(filler || ' ').repeat(missing).slice(0, 2 * missing)].slice(0, missing).join('');
    return width < 0 ? padding + text : text + padding;
  }

  /**
   * JSON text of at most `maxBytes`. Writing stops at the limit, because an output that holds one array many times is
   * small in memory and huge as text.
   */
  function jsonText(output: unknown, maxBytes: number): string {
    const parts: string[] = [];
    let bytes = 0;
    write(output, 0);
    return parts.join('');

    function add(text: string): void {
      bytes += host.byteLength(text);
      if (bytes > maxBytes) throw new ExpressionError(`The output is larger than ${maxBytes} bytes`);
      parts.push(text);
    }

    function write(value: unknown, level: number): void {
      if (level > MAX_OUTPUT_LEVELS) throw new ExpressionError(`The output has more than ${MAX_OUTPUT_LEVELS} levels`);
      if (value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)))
        return add(String(value));
      if (typeof value === 'string') return add(value.length > maxBytes ? value : JSON.stringify(value));
      if (typeof value !== 'object' || isFunction(value))
        throw new ExpressionError('The output holds something that is not JSON, such as a function');
      if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++) {
          add(i === 0 ? '[' : ',');
          write(value[i] === undefined ? null : value[i], level + 1);
        }
        return add(value.length === 0 ? '[]' : ']');
      }
      const members = Object.entries(value).filter(([, member]) => member !== undefined);
      members.forEach(([name, member], i) => {
        add(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`);
        write(member, level + 1);
      });
      add(members.length === 0 ? '{}' : '}');
    }
  }

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

  /** Throws for a regular expression anywhere in the syntax tree that RE2 cannot match. */
  function checkPatterns(root: unknown): void {
    const seen = new Set<unknown>();
    const open: unknown[] = [root];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (node instanceof RegExp) compilePattern(node);
      else if (typeof node === 'object' && node !== null && !seen.has(node)) {
        seen.add(node);
        for (const member of Object.values(node)) if (member !== undefined) open.push(member);
      }
    }
  }

  let prepared: [source: string, argsText: string, limits: ExpressionLimits];
  let result: ExpressionResult | undefined;

  async function run(): Promise<void> {
    const [source, argsText, limits] = prepared;
    let steps = 0;
    let late = false;
    const deadline = Date.now() + limits.wallMs;
    try {
      const expression = jsonata(source, {
        stack: MAX_STACK_DEPTH,
        sequence: MAX_SEQUENCE_LENGTH,
        RegexEngine: LinearRegExp as unknown as RegExpConstructor,
      });
      expression.assign(Symbol.for('jsonata.__evaluate_entry') as unknown as string, () => {
        if (steps === limits.maxSteps)
          throw new ExpressionError(`The expression takes more than ${limits.maxSteps} steps`);
        if (++steps % REPORT_STEPS === 0) host.onSteps(steps);
        late ||= Date.now() > deadline;
        if (late) throw new ExpressionError('The expression takes too long');
      });
      expression.registerFunction('pad', pad, '<s-ns?:s>');
      expression.registerFunction('eval', () => {
        throw new ExpressionError('$eval is not available');
      });
      expression.registerFunction('base64encode', (text?: string) => text && host.base64Of(text), '<s-:s>');
      expression.registerFunction('base64decode', (text?: string) => text && host.binaryOf(text), '<s-:s>');
      const output: unknown = await expression.evaluate(parseJson(argsText));
      if (output === undefined) throw new ExpressionError('The expression produced no output');
      result = { outcome: 'succeeded', outputText: jsonText(output, limits.outputBytes), steps };
    } catch (error) {
      result = late ? { outcome: 'timed_out', steps } : { outcome: 'failed', message: publicMessage(error), steps };
    }
  }

  return {
    check(source) {
      if (source.length > MAX_SOURCE_CHARACTERS) return `must have at most ${MAX_SOURCE_CHARACTERS} characters`;
      try {
        checkPatterns(jsonata(source).ast());
        return undefined;
      } catch (error) {
        return error instanceof RangeError ? 'The expression is nested too deeply' : publicMessage(error);
      }
    },
    prepare(source, argsText, { wallMs, maxSteps, outputBytes }) {
      prepared = [source, argsText, { wallMs, maxSteps, outputBytes }];
      result = undefined;
    },
    run,
    result: () => result,
  };
}
