import type { QuickJSContext, QuickJSDeferredPromise, QuickJSHandle } from 'quickjs-emscripten-core';

/** Calls a tool with an input as JSON text. Resolves to an answer as RunTools gives it; never rejects. */
export type CallTool = (operation: string, input: string) => Promise<string>;

/**
 * Lets a script call tools, whose answers it gets between its own turns.
 * @param given.most calls; a further one is not made, and no answer comes any more
 */
export function openToolBridge(
  context: QuickJSContext,
  { callTool, most, onTooMany }: { callTool: CallTool; most: number; onTooMany(): void },
) {
  let calls = 0;
  let unanswered = 0;
  /** Each gives the script an answer that has come. */
  const answers: (() => void)[] = [];
  let onAnswer = (): void => undefined;

  return {
    /** @returns a promise of the script */
    call(operation: string, input: string): QuickJSHandle {
      const deferred = newPromise(context);
      calls += 1;
      if (calls > most) {
        onTooMany();
        return deferred.handle;
      }
      unanswered += 1;
      void callTool(operation, input).then((answer) => {
        answers.push(() => context.newString(answer).consume(deferred.resolve));
        onAnswer();
      });
      return deferred.handle;
    },
    /** Waits until a call is answered, and gives the script the answer. False: none is due. */
    async nextAnswer(): Promise<boolean> {
      if (unanswered === 0 || calls > most) return false;
      if (answers.length === 0) await new Promise<void>((resolve) => (onAnswer = resolve));
      unanswered -= 1;
      answers.shift()!();
      return true;
    },
  };
}

/** The library fails when the memory grows in the middle of this, and succeeds when it has grown. */
function newPromise(context: QuickJSContext): QuickJSDeferredPromise {
  try {
    return context.newPromise();
  } catch {
    return context.newPromise();
  }
}
