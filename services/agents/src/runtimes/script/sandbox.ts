import variant from '@jitl/quickjs-wasmfile-release-sync';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  Scope,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
} from 'quickjs-emscripten-core';
import { MAX_MESSAGE_CHARACTERS, REPORT_STEPS, type EvaluationResult } from '../runners/evaluation.ts';
import type { RunLimits } from '../rules.ts';
import { makeJsonText } from '../json-text.ts';
import { callOf, makeConsole, makeSilentConsole, makeStart } from './prelude.ts';
import { openToolBridge, type CallTool } from './tool-bridge.ts';

/** The package declares the type of its CommonJS form. */
const VARIANT = variant as unknown as QuickJSSyncVariant;
/** QuickJS asks whether to go on after about ten thousand calls and rounds of loops, which count as so many steps. */
const STEPS_PER_TICK = 100;
/** Of the stack of WebAssembly, below what V8 allows it. */
const MAX_STACK_BYTES = 131_072;
const BYTES_PER_PAGE = 65_536;
const MB = 1_048_576;
/** With how much memory QuickJS starts; a definition's least `memoryMb` is as much. */
const FIRST_BYTES = 16 * MB;
/** An engine that has taken more than this is not kept. */
const KEPT_BYTES = 32 * MB;
/** Organizations whose engine is kept: starting one takes about 3 ms of processor time. */
const KEPT_ENGINES = 4;
const [START, CONSOLE, SILENT_CONSOLE] = [makeStart, makeConsole, makeSilentConsole].map(callOf) as [
  string,
  string,
  string,
];
const OUT_OF_MEMORY = /^out of memory( |$)/;
/** Less than this was left when memory was too short, even for an error that says so. */
const LAST_BYTES = MB;

/** The agent itself is at fault; clients may read the message. */
class ScriptError extends Error {}

const jsonText = makeJsonText({
  byteLength: (text) => Buffer.byteLength(text),
  isFunction: () => false,
  fail(message) {
    throw new ScriptError(message);
  },
});

/** A QuickJS engine in WebAssembly with a memory of its own. */
interface Engine {
  quickjs: QuickJSWASMModule;
  memory: WebAssembly.Memory;
  maxBytes: number;
}

export interface Script {
  source: string;
  /** JSON text; absent to compile the source only. */
  argsText?: string;
  /** Whether what it writes to the console is kept. */
  trace: boolean;
  /** Names of the operations of `memory`; none: it has no such object. */
  operations: readonly string[];
}

export type EvaluateScript = (organizationId: string, script: Script, limits: RunLimits) => Promise<EvaluationResult>;

/**
 * Opens the sandbox of scripts. Every run has a new runtime and a new global object. Runs of one organization may
 * follow each other in one engine; an engine in which anything went wrong is thrown away.
 * @param onSteps called with the number of steps every 10,000 steps, synchronously
 * @param callTool performs the operations of `memory`
 */
export function openSandbox(onSteps: (steps: number) => void, callTool: CallTool): EvaluateScript {
  const file = createRequire(import.meta.url).resolve('@jitl/quickjs-wasmfile-release-sync/wasm');
  const wasmModule = new WebAssembly.Module(readFileSync(file));
  /** The least recently used first. */
  const engines = new Map<string, Engine>();

  async function startEngine(memoryMb: number): Promise<Engine> {
    const maximum = (memoryMb * MB) / BYTES_PER_PAGE;
    const memory = new WebAssembly.Memory({ initial: FIRST_BYTES / BYTES_PER_PAGE, maximum });
    const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(VARIANT, { wasmModule, wasmMemory: memory }));
    return { quickjs, memory, maxBytes: memoryMb * MB };
  }

  function keep(organizationId: string, engine: Engine): void {
    if (engine.memory.buffer.byteLength > KEPT_BYTES) return;
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
  { quickjs, memory, maxBytes }: Engine,
  script: Script,
  limits: RunLimits,
  { onSteps, callTool }: { onSteps(steps: number): void; callTool: CallTool },
): Promise<{ result: EvaluationResult; isSound: boolean }> {
  const deadline = Date.now() + limits.wallMs;
  let steps = 0;
  let stopped: 'late' | 'steps' | undefined;
  let ended = false;

  function tick(): boolean {
    if (ended) return false;
    if (steps + STEPS_PER_TICK > limits.maxSteps) stopped ??= 'steps';
    else {
      steps += STEPS_PER_TICK;
      if (steps % REPORT_STEPS === 0) onSteps(steps);
    }
    if (Date.now() > deadline) stopped ??= 'late';
    return stopped !== undefined;
  }

  function failed(message: string): EvaluationResult {
    if (stopped === 'late') return { outcome: 'timed_out', steps };
    return {
      outcome: 'failed',
      message: stopped ? `The script takes more than ${limits.maxSteps} steps` : message,
      steps,
    };
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
    await Scope.withScopeAsync(async (scope) => {
      const runtime = scope.manage(quickjs.newRuntime());
      runtime.setMaxStackSize(MAX_STACK_BYTES);
      runtime.setInterruptHandler(tick);
      const context = scope.manage(runtime.newContext());
      const before = (text: string): QuickJSHandle =>
        scope.manage(context.unwrapResult(context.evalCode(text, 'runtime.js')));
      const start = before(START);
      const written = before(script.trace ? CONSOLE : SILENT_CONSOLE);
      try {
        const output = await outputOf(context, scope, start, script, callTool);
        result = stopped
          ? failed('')
          : { outcome: 'succeeded', outputText: jsonText(JSON.parse(output), limits.outputBytes), steps };
      } catch (error) {
        if (!(error instanceof ScriptError)) throw error;
        result = failed(reasonOf(error));
      }
      ended = true;
      if (script.trace && result.outcome !== 'timed_out') result.trace = writtenBy(context, scope, written);
    });
    return { result: result!, isSound: stopped === undefined };
  } catch {
    // The engine itself failed: at its limit of stack, say, or when it found objects of a run that was stopped.
    return {
      result: result ?? failed('The script exceeds a limit of the runtime, such as the deepest recursion'),
      isSound: false,
    };
  }
}

/**
 * @returns JSON text
 * @throws ScriptError
 */
async function outputOf(
  context: QuickJSContext,
  scope: Scope,
  functions: QuickJSHandle,
  { source, argsText, operations }: Script,
  callTool: CallTool,
): Promise<string> {
  /** @throws ScriptError with the message that callers may read */
  function evaluated(result: ReturnType<QuickJSContext['evalCode']>): QuickJSHandle {
    if (!result.error) return scope.manage(result.value);
    const error = scope.manage(result.error);
    const message = context.callFunction(messageOf, context.undefined, error);
    throw new ScriptError(message.error ? '' : context.getString(scope.manage(message.value)));
  }

  const start = scope.manage(context.getProp(functions, 'start'));
  const messageOf = scope.manage(context.getProp(functions, 'messageOf'));
  if (argsText === undefined) {
    checkSyntax(context, scope, source);
    return 'null';
  }
  const bridge = openToolBridge(context, scope, { operations, callTool });
  evaluated(context.evalCode(source, 'script.js'));
  const run = evaluated(context.evalCode("typeof run === 'undefined' ? undefined : run", 'runtime.js'));
  const promise = evaluated(
    context.callFunction(start, context.undefined, run, scope.manage(context.newString(argsText))),
  );
  const settle = (): ReturnType<QuickJSContext['getPromiseState']> => {
    const jobs = context.runtime.executePendingJobs();
    if (jobs.error) scope.manage(jobs.error);
    return context.getPromiseState(promise);
  };
  let state = settle();
  // Calls that the script does not wait for are answered, too, so that they have their effect within the run.
  while (await bridge.nextAnswer()) state = settle();
  if (state.type === 'pending') throw new ScriptError('The script waits for something that never happens');
  if (state.type === 'rejected') {
    scope.manage(state.error);
    throw new ScriptError('');
  }
  const text = context.getString(scope.manage(state.value));
  if (!text.startsWith('=')) throw new ScriptError(text.slice(1));
  return text.slice(1);
}

/** What the script wrote; nothing when memory is too short to say. */
function writtenBy(context: QuickJSContext, scope: Scope, read: QuickJSHandle): string[] {
  const written = context.callFunction(read, context.undefined);
  if (written.error) {
    scope.manage(written.error);
    return [];
  }
  return JSON.parse(context.getString(scope.manage(written.value))) as string[];
}

/** @throws ScriptError with the message of the engine, which its author may read */
function checkSyntax(context: QuickJSContext, scope: Scope, source: string): void {
  const compiled = context.evalCode(source, 'script.js', { compileOnly: true });
  if (!compiled.error) return void scope.manage(compiled.value);
  const { message, lineNumber } = context.dump(scope.manage(compiled.error)) as Record<string, unknown>;
  throw new ScriptError(`${String(message)}${typeof lineNumber === 'number' ? ` at line ${lineNumber}` : ''}`);
}
