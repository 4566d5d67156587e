/** Messages of one direction of a call that their consumer has not taken yet may have about so many bytes. */
export const WINDOW_BYTES = 65_536;
const BYTES_PER_MESSAGE = 32;

/** What a message takes of the window: many empty ones fill it, too. */
export const sizeOf = (message: Uint8Array): number => message.length + BYTES_PER_MESSAGE;

/** The window of one direction of a call, as the sender keeps it. */
export interface SendWindow {
  /** Takes the size of a message from the window. Resolves when the next one may be sent. */
  take(message: Uint8Array): Promise<void>;
  /** The consumer has taken so many bytes. */
  update(bytes: number): void;
}

export function makeSendWindow(windowBytes: number): SendWindow {
  let left = windowBytes;
  let resume = (): void => undefined;
  return {
    take(message) {
      left -= sizeOf(message);
      return left > 0 ? Promise.resolve() : new Promise((resolve) => (resume = resolve));
    },
    update(bytes) {
      left += bytes;
      if (left > 0) resume();
    },
  };
}

/** Messages that have arrived, in order, for one consumer. */
export interface ReceiveQueue {
  push(message: Uint8Array): void;
  /** No further messages come. Those that have arrived are consumed before the error is thrown. */
  end(error?: Error): void;
  /**
   * To ask for the next message means that the one before is consumed.
   * @returns undefined after the last one
   * @throws the error of `end`
   */
  next(): Promise<Uint8Array | undefined>;
}

/** @param onConsumed called for half a window at a time */
export function makeReceiveQueue(onConsumed: (bytes: number) => void): ReceiveQueue {
  const messages: Uint8Array[] = [];
  let error: Error | undefined;
  let ended = false;
  let wake = (): void => undefined;
  let consuming = 0;
  let consumed = 0;
  return {
    push(message) {
      messages.push(message);
      wake();
    },
    end(given) {
      error ??= given;
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
      if (messages.length === 0 && !ended) await new Promise<void>((resolve) => (wake = resolve));
      const message = messages.shift();
      if (message) consuming = sizeOf(message);
      else if (error) throw error;
      return message;
    },
  };
}
