// What runs inside of a script's own JavaScript engine before the script: it keeps the built-in functions that it
// needs, because the script may change them. The texts of these functions are compiled there for each run, so they
// refer to nothing outside of themselves, and a run has only those that it needs.

export interface Start {
  /** Resolves to `=` and the output as JSON text, or to `!` and why the run failed (see messageOf). */
  start(run: unknown, argsText: string): Promise<string>;
  /** What callers of the agent may read about a failure; empty when nothing is known, as when memory was too short. */
  messageOf(error: unknown): string;
}

export function makeStart(): Start {
  const MAX_CHARACTERS = 300;
  const { parse, stringify } = JSON;
  const text = String;
  const AnyError = Error;
  const { InternalError } = globalThis as unknown as { InternalError: ErrorConstructor };
  const ofLanguage = [InternalError, TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError];
  const names = ofLanguage.map(({ name }) => name);

  /** The line and column of the script where an error was made. */
  function placeOf({ stack }: Error): string {
    const [, line, column] = /script\.js:(\d+):(\d+)/.exec(text(stack)) ?? [];
    return line === undefined ? '' : ` at line ${line}, column ${column}`;
  }

  /**
   * What the author threw is shown: a text, or the message of an `Error`. An error of the language itself shows only
   * its kind and its place, because its message may contain values; those of a limit (InternalError) contain none.
   */
  function messageOf(error: unknown): string {
    try {
      if (error === null || error === undefined) return '';
      if (typeof error === 'string') return error.slice(0, MAX_CHARACTERS);
      if (!(error instanceof AnyError)) return 'The script threw something that is neither a text nor an error';
      const message = text(error.message).slice(0, MAX_CHARACTERS);
      const kind = ofLanguage.findIndex((known) => error instanceof known);
      if (kind < 0) return message;
      return `${kind === 0 ? message : names[kind]}${placeOf(error)}`;
    } catch {
      return '';
    }
  }

  return {
    messageOf,
    async start(run, argsText) {
      try {
        if (typeof run !== 'function') return '!The script defines no function run(args)';
        const output: unknown = await run(parse(argsText));
        const json = stringify(output) as string | undefined;
        return json === undefined ? '!The script returned no output' : `=${json}`;
      } catch (error) {
        return `!${messageOf(error)}`;
      }
    },
  };
}

/** Defines a console that keeps nothing. */
export function makeSilentConsole(): undefined {
  const write = () => undefined;
  Object.defineProperty(globalThis, 'console', {
    value: Object.freeze({ debug: write, info: write, log: write, warn: write, error: write }),
  });
}

/**
 * Defines a console.
 * @returns what the script wrote, as the JSON text of a list of texts; runs nothing of the script
 */
export function makeConsole(): () => string {
  /** Lines, characters of a line, and characters of all lines as JSON text. */
  const [MAX_LINES, MAX_LINE_CHARACTERS, MAX_JSON] = [100, 2_000, 40_000];
  const { stringify } = JSON;
  const text = String;
  let isFull = false;
  let lines = 0;
  let json = '';
  function write(...values: unknown[]): void {
    if (isFull) return;
    let line = '';
    for (let i = 0; i < values.length && line.length <= MAX_LINE_CHARACTERS; i++) {
      const value = values[i];
      line += `${i === 0 ? '' : ' '}${typeof value === 'string' ? value : ((stringify(value) as string | undefined) ?? text(value))}`;
    }
    const added = stringify(line.length > MAX_LINE_CHARACTERS ? `${line.slice(0, MAX_LINE_CHARACTERS - 1)}…` : line);
    isFull = lines === MAX_LINES || json.length + added.length > MAX_JSON;
    if (isFull) return;
    json += `${lines === 0 ? '' : ','}${added}`;
    lines += 1;
  }
  Object.defineProperty(globalThis, 'console', {
    value: Object.freeze({ debug: write, info: write, log: write, warn: write, error: write }),
  });
  return () => `[${json}]`;
}

/** @returns defines the object `memory` with these operations, each called by `callTool` (RunTools) */
export function makeMemory(): (
  callTool: (operation: string, input: string) => Promise<string>,
  operations: string,
) => void {
  const { parse, stringify } = JSON;
  const AnyError = Error;
  const { assign } = Object;
  return (callTool, operations) => {
    const memory: Record<string, unknown> = {};
    for (const operation of parse(operations) as string[])
      memory[operation] = async (input: unknown = {}) => {
        const answer = parse(await callTool(operation, stringify(input) ?? 'null')) as {
          result?: unknown;
          error?: { message: string };
        };
        if (answer.error === undefined) return answer.result;
        throw assign(new AnyError(answer.error.message), answer.error);
      };
    Object.defineProperty(globalThis, 'memory', { value: Object.freeze(memory) });
  };
}

/**
 * The text of one of these functions as a call of it: without comments and indentation, because compiling takes a time
 * that grows with its length. None of them has a text with several spaces.
 */
export const callOf = (make: () => unknown): string =>
  `(${String(make)
    .replace(/\/\*\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')})()`;
