import type { RequestFrame } from 'proto/platform/v1/calls.ts';
import { ServiceError } from '../core/errors.ts';
import { makeReceiveQueue } from './flow-window.ts';

/** The largest request that a service takes, however it comes. */
export const MAX_REQUEST_BYTES = 4 << 20;

/** The requests of one bidirectional call, for its handler; each is serialized. */
export interface IncomingRequests extends AsyncIterable<Uint8Array> {
  receive(frame: RequestFrame): void;
  /** The call is over: a handler that still reads gets CLIENT_GONE. */
  abandon(): void;
}

/** @param onConsumed tells the caller that it may send so many bytes more */
export function makeIncomingRequests(onConsumed: (bytes: number) => void): IncomingRequests {
  const queue = makeReceiveQueue(onConsumed);
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  return {
    receive({ request, more, last }) {
      if (last) return queue.end();
      bytes += request.length;
      if (bytes > MAX_REQUEST_BYTES) {
        pieces = [];
        return queue.end(new ServiceError('BODY_TOO_LARGE', 'A request of the call is too large'));
      }
      pieces.push(request);
      if (more) return;
      queue.push(pieces.length === 1 ? request : Buffer.concat(pieces));
      pieces = [];
      bytes = 0;
    },
    abandon: () => queue.end(new ServiceError('CLIENT_GONE')),
    async *[Symbol.asyncIterator]() {
      for (let request; (request = await queue.next());) yield request;
    },
  };
}
