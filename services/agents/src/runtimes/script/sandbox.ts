import { parseJson } from 'platform/core/parse-json.ts';
import type { QuickJSContext, QuickJSHandle } from 'quickjs-emscripten-core';
import {
  isTrace,
  MAX_MESSAGE_CHARACTERS,
  REPORT_STEPS,
  type EvaluationResult,
  type Failure,
} from '../runners/evaluation.ts';
import { REFUSED_CALLS } from '../runners/tool-calls.ts';
import type { RunLimits } from '../rules.ts';
import { invalidOutput } from '../invalid-output.ts';
import { FIRST_BYTES, loadQuickJs, MB, type Engine } from './engine.ts';
import { CONSOLE } from './prelude.ts';
import { openToolBridge, type CallTool } from './tool-bridge.ts';

/** QuickJS asks whether to go on after about ten thousand calls and rounds of loops, which count as so many steps. */
const STEPS_PER_TICK = 100;
/** Organizations whose engine is kept. */
const KEPT_ENGINES = 8;
const OUT_OF_MEMORY = /^out of memory( |$)/;
/** Less than this was left when memory was too short, even for an error that says so. */
const LAST_BYTES = MB;

/** The agent itself is at fault, or its output; clients may read the message. */
class ScriptError extends Error {
  readonly outcome: Failure;
  constructor(message: string, outcome: Failure = 'failed') {
    super(message);
    this.outcome = outcome;
  }
}

export interface Script {
  source: string;
  /** JSON text; absent to compile the source only. */
  argsText?: string;
  /** Whether what it writes to the console is kept. */
  trace: boolean;
  /** Names of the operations of `memory`; none: it has no such object. */
  operations: readonly string[];
  /** Further ones are refused. */
  maxToolCalls: number;
}

export type EvaluateScript = (organizationId: string, script: Script, limits: RunLimits) => Promise<EvaluationResult>;

/**
 * Opens the sandbox of scripts. Runs of one organization may follow each other in one engine, whose memory is set back
 * before each; an engine in which anything went wrong is thrown away.
 * @param onSteps called with the number of steps every 10,000 steps, synchronously
 * @param callTool performs the operations of `memory`
 */
export function openSandbox(onSteps: (steps: number) => void, callTool: CallTool): EvaluateScript {
  const startEngine = loadQuickJs();
  /** The least recently used first. */
  const engines = new Map<string, Engine>();

  function keep(organizationId: string, engine: Engine): void {
    // memory does not shrink, and a run is to have as much left as in a new engine
    if (engine.memory.buffer.byteLength > FIRST_BYTES) return;
    engines.set(organizationId, engine);
    if (engines.size > KEPT_ENGINES) engines.delete(engines.keys().next().value!);
  }

  return async (organizationId, script, limits) => {
    const kept = engines.get(organizationId);
    engines.delete(organizationId);
    const engine = kept?.maxBytes === limits.memoryMb * MB ? kept : await startEngine(limits.memoryMb);
    const { result, isSound } = await evaluate(engine, script, limits, { onSteps, callTool });
    if (isSound) keep(organizationId, engine);
    return result;
  };
}

/** @returns `isSound` is false when the engine must not be used again */
async function evaluate(
  engine: Engine,
  script: Script,
  limits: RunLimits,
  { onSteps, callTool }: { onSteps(steps: number): void; callTool: CallTool },
): Promise<{ result: EvaluationResult; isSound: boolean }> {
  const { memory, maxBytes } = engine;
  const deadline = Date.now() + limits.wallMs;
  let steps = 0;
  let stopped: 'late' | 'steps' | 'calls' | undefined;
  let ticksAfterEnd = -1;

  function tick(): boolean {
    // what the script wrote is read in less than one
    if (ticksAfterEnd >= 0) return ++ticksAfterEnd > 1;
    if (steps + STEPS_PER_TICK > limits.maxSteps) stopped ??= 'steps';
    else {
      steps += STEPS_PER_TICK;
      if (steps % REPORT_STEPS === 0) onSteps(steps);
    }
    if (Date.now() > deadline) stopped ??= 'late';
    return stopped !== undefined;
  }

  function failed(message: string, outcome: Failure = 'failed'): EvaluationResult {
    if (stopped === 'late') return { outcome: 'timed_out', steps };
    const exceeded = {
      steps: `The script takes more than ${limits.maxSteps} steps`,
      calls: `The script calls its tools more than ${script.maxToolCalls} times`,
    };
    return stopped ? { outcome: 'failed', message: exceeded[stopped], steps } : { outcome, message, steps };
  }

  function reasonOf({ message }: ScriptError): string {
    const isFull = maxBytes - memory.buffer.byteLength < LAST_BYTES;
    if (OUT_OF_MEMORY.test(message) || (message === '' && isFull))
      return `The script takes more than ${limits.memoryMb} MB of memory`;
    // The prelude cuts it by functions that the script may have changed.
    return message === '' ? 'The script failed' : message.slice(0, MAX_MESSAGE_CHARACTERS);
  }

  let result: EvaluationResult | undefined;
  try {
    const tools = openToolBridge(engine.context, {
      ...{ callTool, most: script.maxToolCalls + REFUSED_CALLS },
      onTooMany: () => (stopped ??= 'calls'),
    });
    engine.restart({ tick, callTool: tools.call });
    try {
      // steps count from the first
      if (tick()) throw new ScriptError('');
      const outputText = await outputOf(engine, script, tools.nextAnswer);
      if (Buffer.byteLength(outputText) > limits.outputBytes)
        throw new ScriptError(`The output is larger than ${limits.outputBytes} bytes`);
      result = stopped ? failed('') : { outcome: 'succeeded', outputText, steps };
    } catch (error) {
      if (!(error instanceof ScriptError)) throw error;
      result = failed(reasonOf(error), error.outcome);
    }
    ticksAfterEnd = 0;
    if (script.trace && result.outcome !== 'timed_out') result.trace = writtenBy(engine);
    return { result, isSound: stopped === undefined };
  } catch {
    // The engine itself failed: at its limit of stack, say.
    return {
      result: result ?? failed('The script exceeds a limit of the runtime, such as the deepest recursion'),
      isSound: false,
    };
  }
}

/**
 * @param nextAnswer gives the script the next answer of a tool; false: none is due
 * @returns JSON text
 * @throws ScriptError
 */
async function outputOf(
  { context, prelude }: Engine,
  { source, argsText, trace, operations }: Script,
  nextAnswer: () => Promise<boolean>,
): Promise<string> {
  const call = (one: QuickJSHandle, ...args: QuickJSHandle[]): ReturnType<QuickJSContext['callFunction']> =>
    context.callFunction(one, context.undefined, ...args);

  /** An error with the message that callers may read. */
  function thrown(error: QuickJSHandle): ScriptError {
    const message = call(prelude.messageOf, error);
    return new ScriptError(message.error ? '' : context.getString(message.value));
  }

  /** @throws ScriptError */
  function valueOf(result: ReturnType<QuickJSContext['callFunction']>): QuickJSHandle {
    if (result.error) throw thrown(result.error);
    return result.value;
  }

  if (argsText === undefined) {
    checkSyntax(context, source);
    return 'null';
  }
  valueOf(call(prelude.seedRandom, context.newString(randomSeed())));
  if (trace) valueOf(call(prelude.keepConsole));
  if (operations.length > 0)
    valueOf(call(prelude.defineMemory, prelude.callTool, context.newString(JSON.stringify(operations))));
  valueOf(context.evalCode(source, 'script.js'));
  const promise = valueOf(call(prelude.start, valueOf(call(prelude.findRun)), context.newString(argsText)));
  const settle = (): ReturnType<QuickJSContext['getPromiseState']> => {
    context.runtime.executePendingJobs();
    return context.getPromiseState(promise);
  };
  let state = settle();
  // Calls that the script does not wait for are answered, too, so that they have their effect within the run.
  while (await nextAnswer()) state = settle();
  if (state.type === 'pending') throw new ScriptError('The script waits for something that never happens');
  if (state.type === 'rejected') throw thrown(state.error);
  const text = context.getString(state.value);
  const said = text.slice(1);
  if (text.startsWith('=')) return said;
  throw text.startsWith('?')
    ? new ScriptError(invalidOutput(said, 'The number is not a finite number'), 'output_invalid')
    : new ScriptError(said);
}

/** Four integers of 32 bits, as JSON text. From the system, so that no organization can tell those of another. */
const randomSeed = (): string => JSON.stringify(Array.from(crypto.getRandomValues(new Int32Array(4))));

/** What the script wrote; nothing when memory is too short to say, and nothing that the prelude cannot have kept. */
function writtenBy({ context, prelude }: Engine): string[] {
  const written = context.callFunction(prelude.keepConsole, context.undefined);
  if (written.error) return [];
  const json = context.getString(written.value);
  const lines = json.length > CONSOLE.maxJson + '[]'.length ? [] : parseJson(json);
  return isTrace(lines) ? lines : [];
}

/** @throws ScriptError with the message of the engine, which its author may read */
function checkSyntax(context: QuickJSContext, source: string): void {
  const compiled = context.evalCode(source, 'script.js', { compileOnly: true });
  if (!compiled.error) return;
  const { message, lineNumber } = context.dump(compiled.error) as Record<string, unknown>;
  throw new ScriptError(`${String(message)}${typeof lineNumber === 'number' ? ` at line ${lineNumber}` : ''}`);
}
