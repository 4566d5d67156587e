/** Calls of tools that an evaluation may have under way; further ones wait in the runner. */
export const TOOL_CALLS_AT_ONCE = 4;
/** A script has failed when it goes on after so many calls beyond `maxToolCalls`, which were refused. */
export const REFUSED_CALLS = 100;

/** Of an input: a content of memory, and what stands beside it. */
export const MAX_INPUT_BYTES = 278_528;

/** A runner asks for a call of a tool. */
export interface ToolCall {
  /** From 1, and one more each time. */
  call: number;
  operation: string;
  /** JSON text. */
  input: string;
}
/** The answer to a call, from the pool to the runner. */
export interface ToolAnswer {
  id: number;
  call: number;
  /** JSON text, as RunTools gives it. */
  answer: string;
}

/** The runner's side: sends calls, a few at once, and waits for their answers. */
export function openToolCalls(send: (call: ToolCall) => void) {
  const sent = new Map<number, (answer: string) => void>();
  const waiting: (() => void)[] = [];
  let calls = 0;

  return {
    call(operation: string, input: string): Promise<string> {
      const message = `The input of memory.${operation} is larger than ${MAX_INPUT_BYTES} bytes`;
      if (Buffer.byteLength(input) > MAX_INPUT_BYTES)
        return Promise.resolve(JSON.stringify({ error: { code: 'invalid_request', message } }));
      return new Promise((resolve) => {
        const start = (): void => {
          calls += 1;
          sent.set(calls, resolve);
          send({ call: calls, operation, input });
        };
        if (sent.size < TOOL_CALLS_AT_ONCE) start();
        else waiting.push(start);
      });
    },
    answer({ call, answer }: ToolAnswer): void {
      const resolve = sent.get(call);
      sent.delete(call);
      resolve?.(answer);
      waiting.shift()?.();
    },
  };
}
