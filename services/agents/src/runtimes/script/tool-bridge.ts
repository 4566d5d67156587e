import type { QuickJSContext, QuickJSHandle, Scope } from 'quickjs-emscripten-core';
import { callOf, makeMemory } from './prelude.ts';

const MEMORY = callOf(makeMemory);

/** Calls a tool with an input as JSON text. Resolves to an answer as RunTools gives it; never rejects. */
export type CallTool = (operation: string, input: string) => Promise<string>;

/**
 * Lets a script call tools: gives it the object `memory` if it has any operations.
 * @param given.operations their names
 */
export function openToolBridge(
  context: QuickJSContext,
  scope: Scope,
  { operations, callTool }: { operations: readonly string[]; callTool: CallTool },
) {
  /** Each gives the script its answer. */
  const unanswered = new Set<Promise<() => void>>();

  const callFromScript = (operation: QuickJSHandle, input: QuickJSHandle): QuickJSHandle => {
    const deferred = scope.manage(context.newPromise());
    const answered = callTool(context.getString(operation), context.getString(input)).then((answer) => () => {
      unanswered.delete(answered);
      context.newString(answer).consume(deferred.resolve);
    });
    unanswered.add(answered);
    return deferred.handle;
  };
  if (operations.length > 0) {
    const provide = scope.manage(context.unwrapResult(context.evalCode(MEMORY, 'runtime.js')));
    const names = scope.manage(context.newString(JSON.stringify(operations)));
    const host = scope.manage(context.newFunction('callTool', callFromScript));
    scope.manage(context.unwrapResult(context.callFunction(provide, context.undefined, host, names)));
  }

  return {
    /** Waits until a call is answered, and gives the script the answer. False: none is unanswered. */
    async nextAnswer(): Promise<boolean> {
      if (unanswered.size === 0) return false;
      (await Promise.race(unanswered))();
      return true;
    },
  };
}
