// What a script's own JavaScript engine has before the script: functions that keep the built-in functions which they
// need, because the script may change them. Their texts are compiled there, so each refers to nothing outside of
// itself. They have no template literals: QuickJS makes them by calling `concat`, which the script may change, too.

import { MAX_MESSAGES, MAX_TEXT_CHARACTERS } from '../runners/evaluation.ts';

/** What is kept of the console; `maxJson` are the characters of all lines as JSON text. */
export const CONSOLE = { maxLines: MAX_MESSAGES, maxLineCharacters: MAX_TEXT_CHARACTERS, maxJson: 40_000 };

/** What a writer makes of a value: its JSON text, or the place of the first number that is not finite. */
interface Written {
  json: string | undefined;
  /** A JSON pointer. */
  infiniteAt: string | undefined;
}

/** @returns JSON.stringify, which tells of numbers that JSON has not, too: it writes null in their place */
function makeWriter(): (value: unknown) => Written {
  interface Place {
    holder: unknown;
    name: string;
    above: Place | undefined;
  }
  const { stringify } = JSON;
  const { apply } = Reflect;
  const { replaceAll } = String.prototype;
  const AnyNumber = Number;
  const { isFinite } = Number;
  const escaped = (name: string): string => apply(replaceAll, apply(replaceAll, name, ['~', '~0']), ['/', '~1']);

  return (value) => {
    let above: Place | undefined;
    let infinite: Place | undefined;
    /** Called for each member before it is written, with its object or list as `this`. */
    function replacer(this: unknown, name: string, member: unknown): unknown {
      const isObject = typeof member === 'object' && member !== null;
      if (!isObject && typeof member !== 'number') return member;
      while (above !== undefined && above.holder !== this) above = above.above;
      const isNumber = !isObject || member instanceof AnyNumber;
      if (isNumber && !isFinite(+(member as number))) infinite ??= { holder: this, name, above };
      if (isObject) above = { holder: member, name, above };
      return member;
    }
    const json = stringify(value, replacer) as string | undefined;
    let infiniteAt = infinite && '';
    // The name of the value itself is "".
    for (let place = infinite; place?.above !== undefined; place = place.above)
      infiniteAt = '/' + escaped(place.name) + infiniteAt!;
    return { json, infiniteAt };
  };
}

/**
 * @returns resolves to `=` and the output as JSON text; to `!` and why it failed; or to `?` and the place of a number
 * that is not finite. Rejects with what was thrown
 */
function makeStart(write: (value: unknown) => Written): (run: unknown, argsText: string) => Promise<string> {
  const { parse } = JSON;
  return async (run, argsText) => {
    if (typeof run !== 'function') return '!The script defines no function run(args)';
    const { json, infiniteAt } = write(await run(parse(argsText)));
    if (infiniteAt !== undefined) return '?' + infiniteAt;
    return json === undefined ? '!The script returned no output' : '=' + json;
  };
}

/**
 * @returns what callers of the agent may read about a failure; empty when nothing is known, as when memory was too
 * short. What the author threw is shown: a text, or the message of an `Error`. An error of the language itself shows
 * only its kind and its place, because its message may contain values; those of a limit (InternalError) contain none.
 */
function makeMessageOf(): (error: unknown) => string {
  const MAX_CHARACTERS = 300;
  const NAMES = ['', 'TypeError', 'RangeError', 'ReferenceError', 'SyntaxError', 'EvalError', 'URIError'];
  const { InternalError } = globalThis as unknown as { InternalError: ErrorConstructor };
  const [text, AnyError] = [String, Error];
  const ofLanguage = [InternalError, TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError];
  return (error) => {
    try {
      if (error === null || error === undefined) return '';
      if (typeof error === 'string') return error.slice(0, MAX_CHARACTERS);
      if (!(error instanceof AnyError)) return 'The script threw something that is neither a text nor an error';
      const message = text(error.message).slice(0, MAX_CHARACTERS);
      const kind = ofLanguage.findIndex((known) => error instanceof known);
      if (kind < 0) return message;
      const [, line, column] = /script\.js:(\d+):(\d+)/.exec(text(error.stack)) ?? [];
      return (kind === 0 ? message : NAMES[kind]!) + (line ? ' at line ' + line + ', column ' + column! : '');
    } catch {
      return '';
    }
  };
}

/**
 * Defines a Math.random of its own (sfc32), because every run begins with the same memory, and so with the same state
 * of the engine's.
 * @returns sets its state: a JSON list of four integers of 32 bits
 */
function makeRandom(): (seed: string) => void {
  const { parse } = JSON;
  let [a, b, c, d] = [0, 0, 0, 0];
  const bits = (): number => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  const { random } = {
    random: () => (bits() * 2_097_152 + (bits() >>> 11)) / 9_007_199_254_740_992,
  };
  Math.random = random;
  return (seed) => {
    [a, b, c, d] = parse(seed) as [number, number, number, number];
    for (let i = 0; i < 12; i++) bits();
  };
}

/**
 * Defines a console, which keeps nothing unless it is told to.
 * @returns tells it to keep what is written; or, when it does, gives that as the JSON text of a list of texts, and runs
 * nothing of the script
 */
function makeConsole({ maxLines, maxLineCharacters, maxJson }: typeof CONSOLE): () => string {
  const { stringify } = JSON;
  const { apply } = Reflect;
  const { slice } = String.prototype;
  const text = String;
  let isKeeping = false;
  let lines = 0;
  let json = '';
  function write(...values: unknown[]): void {
    if (!isKeeping) return;
    let line = '';
    for (let i = 0; i < values.length && line.length <= maxLineCharacters; i++) {
      const value = values[i];
      line += i === 0 ? '' : ' ';
      line += typeof value === 'string' ? value : ((stringify(value) as string | undefined) ?? text(value));
    }
    if (line.length > maxLineCharacters) line = apply(slice, line, [0, maxLineCharacters - 1]) + '…';
    const added = stringify(line);
    isKeeping = lines < maxLines && json.length + added.length <= maxJson;
    if (!isKeeping) return;
    json += (lines === 0 ? '' : ',') + added;
    lines += 1;
  }
  Object.defineProperty(globalThis, 'console', {
    value: Object.freeze({ debug: write, info: write, log: write, warn: write, error: write }),
  });
  return () => {
    isKeeping = true;
    return '[' + json + ']';
  };
}

/** @returns defines the object `memory` with these operations, each called by `callTool` (RunTools) */
function makeMemory(
  write: (value: unknown) => Written,
): (callTool: (operation: string, input: string) => Promise<string>, operations: string) => void {
  const { parse } = JSON;
  const AnyError = Error;
  const { assign } = Object;
  return (callTool, operations) => {
    const memory: Record<string, unknown> = {};
    for (const operation of parse(operations) as string[])
      memory[operation] = async (input: unknown = {}) => {
        const { json = 'null', infiniteAt } = write(input);
        if (infiniteAt !== undefined) {
          const message = 'The number is not a finite number';
          const details = [{ path: infiniteAt, message }];
          throw assign(new AnyError(message), { code: 'invalid_request', message, details });
        }
        const answer = parse(await callTool(operation, json)) as {
          result?: unknown;
          error?: { message: string };
        };
        if (answer.error === undefined) return answer.result;
        throw assign(new AnyError(answer.error.message), answer.error);
      };
    Object.defineProperty(globalThis, 'memory', { value: Object.freeze(memory) });
  };
}

const callOf = <Given extends unknown[]>(make: (...given: Given) => unknown, ...given: Given): string =>
  `(${String(make)})(${given.map((one) => JSON.stringify(one)).join()})`;

const withWriter = (make: (write: (value: unknown) => Written) => unknown): string =>
  `(${String(make)})(${callOf(makeWriter)})`;

/** By name, the text of an expression whose value is the function. */
export const PRELUDE = {
  start: withWriter(makeStart),
  messageOf: callOf(makeMessageOf),
  seedRandom: callOf(makeRandom),
  keepConsole: callOf(makeConsole, CONSOLE),
  defineMemory: withWriter(makeMemory),
  /** The function `run` of the script, which may be a variable of any kind. */
  findRun: "() => typeof run === 'undefined' ? undefined : run",
};
