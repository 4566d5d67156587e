import variant from '@jitl/quickjs-wasmfile-release-sync';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
} from 'quickjs-emscripten-core';
import { PRELUDE } from './prelude.ts';

/** The package declares the type of its CommonJS form. */
const VARIANT = variant as unknown as QuickJSSyncVariant;
/** Of the stack of WebAssembly, below what V8 allows it. */
const MAX_STACK_BYTES = 131_072;
export const PAGE_BYTES = 65_536;
export const MB = 1_048_576;
/** With how much memory QuickJS starts; a definition's least `memoryMb` is as much. */
export const FIRST_BYTES = 16 * MB;
/** The build has 5 MB for its stack, of which hardly anything is in use between two calls. */
const LEAST_UNUSED_STACK_BYTES = 2 * MB;

/** What an engine asks of the run under way. */
export interface Host {
  /** Whether the script must stop; asked after about ten thousand calls and rounds of loops. */
  tick(): boolean;
  /** Returns a promise of the script. */
  callTool(operation: string, input: string): QuickJSHandle;
}

/** A QuickJS engine in WebAssembly with a memory of its own, and a runtime that has run nothing but the prelude. */
export interface Engine {
  context: QuickJSContext;
  prelude: Readonly<Record<keyof typeof PRELUDE | 'callTool', QuickJSHandle>>;
  memory: WebAssembly.Memory;
  maxBytes: number;
  /** Lets the engine forget everything since it was started, and takes the host of its next run. */
  restart(host: Host): void;
}

/** Loads QuickJS. Each engine takes some milliseconds of processor time, the first some more. */
export function loadQuickJs(): (memoryMb: number) => Promise<Engine> {
  const file = createRequire(import.meta.url).resolve('@jitl/quickjs-wasmfile-release-sync/wasm');
  const wasmModule = new WebAssembly.Module(readFileSync(file));
  /** Equal for all engines, because all begin in the same way. */
  let used: PageRange[] | undefined;

  return async (memoryMb) => {
    const maximum = (memoryMb * MB) / PAGE_BYTES;
    const memory = new WebAssembly.Memory({ initial: FIRST_BYTES / PAGE_BYTES, maximum });
    const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(VARIANT, { wasmModule, wasmMemory: memory }));
    const runtime = quickjs.newRuntime();
    runtime.setMaxStackSize(MAX_STACK_BYTES);
    let host: Host | undefined;
    runtime.setInterruptHandler(() => host?.tick() ?? false);
    const context = runtime.newContext();
    const compiled = Object.entries(PRELUDE).map(([name, text]) => [
      name,
      context.unwrapResult(context.evalCode(text, 'runtime.js')),
    ]);
    // The script can make neither the handles here nor this function unreachable, so nothing of them is ever freed.
    const callTool = context.newFunction('callTool', (operation, input) =>
      host!.callTool(context.getString(operation), context.getString(input)),
    );
    const restore = keepMemory(memory, (used ??= usedPages(memory)));
    return {
      context,
      prelude: { ...(Object.fromEntries(compiled) as Record<keyof typeof PRELUDE, QuickJSHandle>), callTool },
      memory,
      maxBytes: memoryMb * MB,
      restart(next) {
        restore();
        host = next;
      },
    };
  };
}

type PageRange = readonly [from: number, to: number];

/** Copies these pages. @returns writes them back. What was added since then stays, as memory that nothing allocated */
function keepMemory(memory: WebAssembly.Memory, pages: readonly PageRange[]): () => void {
  const kept = pages.map(([from, to]) => ({
    at: from * PAGE_BYTES,
    part: new Uint8Array(memory.buffer).slice(from * PAGE_BYTES, to * PAGE_BYTES),
  }));
  return () => {
    const bytes = new Uint8Array(memory.buffer);
    for (const { at, part } of kept) bytes.set(part, at);
  };
}

/** The pages that an engine uses when it has been started, without those of the stack. */
function usedPages(memory: WebAssembly.Memory): PageRange[] {
  const zeros = Buffer.alloc(PAGE_BYTES);
  const isZero = Array.from({ length: FIRST_BYTES / PAGE_BYTES }, (_, page) =>
    zeros.equals(new Uint8Array(memory.buffer, page * PAGE_BYTES, PAGE_BYTES)),
  );
  const used = isZero.lastIndexOf(false) + 1;
  const [from, to] = longestRun(isZero.slice(0, used));
  const isStack = (to - from) * PAGE_BYTES >= LEAST_UNUSED_STACK_BYTES;
  // Static variables that are zero may follow the others; so may zeros at the end of the last block of the heap.
  return isStack
    ? [
        [0, from + 1],
        [to, used + 1],
      ]
    : [[0, used + 1]];
}

/** The first of the longest runs of `true`: where it begins, and where it ends. */
function longestRun(flags: readonly boolean[]): [from: number, to: number] {
  let [from, to] = [0, 0];
  for (let begin = 0; begin < flags.length; begin++) {
    let end = begin;
    while (flags[end]) end++;
    if (end - begin > to - from) [from, to] = [begin, end];
    begin = end;
  }
  return [from, to];
}
