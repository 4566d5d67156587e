/** Replies of a server-streaming call that its caller has not consumed may have about so many bytes. */
export const WINDOW_BYTES = 65_536;
const BYTES_PER_REPLY = 32;

/** What a reply takes of the window: many empty ones fill it, too. */
const sizeOf = (reply: Uint8Array): number => reply.length + BYTES_PER_REPLY;

/** The window of one call, as the service keeps it. */
export interface SendWindow {
  /** Takes the size of a reply from the window. Resolves when the next reply may be sent. */
  take(reply: Uint8Array): Promise<void>;
  /** The caller has consumed so many bytes. */
  update(bytes: number): void;
}

export function makeSendWindow(windowBytes: number): SendWindow {
  let left = windowBytes;
  let resume = (): void => undefined;
  return {
    take(reply) {
      left -= sizeOf(reply);
      return left > 0 ? Promise.resolve() : new Promise((resolve) => (resume = resolve));
    },
    update(bytes) {
      left += bytes;
      if (left > 0) resume();
    },
  };
}

/** Replies that have arrived at the caller, in order, for one consumer. */
export interface ReplyQueue {
  push(reply: Uint8Array): void;
  /** No further replies come. Those that have arrived are consumed before the error is thrown. */
  end(error?: Error): void;
  /**
   * To ask for the next reply means that the one before is consumed.
   * @returns undefined after the last one
   * @throws the error of `end`
   */
  next(): Promise<Uint8Array | undefined>;
}

/** @param onConsumed called for half a window at a time */
export function makeReplyQueue(onConsumed: (bytes: number) => void): ReplyQueue {
  const replies: Uint8Array[] = [];
  let error: Error | undefined;
  let ended = false;
  let wake = (): void => undefined;
  let consuming = 0;
  let consumed = 0;
  return {
    push(reply) {
      replies.push(reply);
      wake();
    },
    end(given) {
      error = given;
      ended = true;
      wake();
    },
    async next() {
      consumed += consuming;
      consuming = 0;
      if (consumed >= WINDOW_BYTES / 2) {
        onConsumed(consumed);
        consumed = 0;
      }
      if (replies.length === 0 && !ended) await new Promise<void>((resolve) => (wake = resolve));
      const reply = replies.shift();
      if (reply) consuming = sizeOf(reply);
      else if (error) throw error;
      return reply;
    },
  };
}
