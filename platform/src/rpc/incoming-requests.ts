import type { RequestFrame } from 'proto/platform/v1/calls.ts';
import { ServiceError } from '../core/errors.ts';
import { makeReceiveQueue, sizeOf, WINDOW_BYTES } from './flow-window.ts';

/** The largest request that a service takes; the pieces of a bidirectional call count with 32 bytes more each. */
export const MAX_REQUEST_BYTES = 4 << 20;

/** The requests of one bidirectional call, for its handler; each is serialized. */
export interface IncomingRequests extends AsyncIterable<Uint8Array> {
  receive(frame: RequestFrame): void;
  /** The call is over: a handler that still reads gets what has arrived, and then CLIENT_GONE. */
  abandon(): void;
}

/** @param onConsumed tells the caller that it may send so many bytes more */
export function makeIncomingRequests(onConsumed: (bytes: number) => void): IncomingRequests {
  /** Of requests that have arrived, and that the caller may not send again yet. */
  let waitingBytes = 0;
  const queue = makeReceiveQueue((bytes) => {
    waitingBytes -= bytes;
    onConsumed(bytes);
  });
  let pieces: Uint8Array[] = [];
  /** Of the request of which pieces have arrived. */
  let pieceBytes = 0;
  let isEnded = false;
  const end = (error?: Error): void => {
    isEnded = true;
    pieces = [];
    queue.end(error);
  };
  return {
    receive({ request, more, last }) {
      if (isEnded) return;
      if (last) return end();
      pieceBytes += sizeOf(request);
      if (pieceBytes > MAX_REQUEST_BYTES || waitingBytes >= WINDOW_BYTES) {
        const what =
          waitingBytes >= WINDOW_BYTES ? 'The requests of the call are more' : 'A request of the call is more';
        return end(new ServiceError('BODY_TOO_LARGE', `${what} than the service takes`));
      }
      pieces.push(request);
      if (more) return;
      const whole = pieces.length === 1 ? request : Buffer.concat(pieces);
      waitingBytes += sizeOf(whole);
      queue.push(whole);
      pieces = [];
      pieceBytes = 0;
    },
    abandon: () => end(new ServiceError('CLIENT_GONE')),
    async *[Symbol.asyncIterator]() {
      for (let request; (request = await queue.next());) yield request;
    },
  };
}
