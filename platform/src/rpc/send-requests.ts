import type { RequestFrame } from 'proto/platform/v1/calls.ts';
import { fairQueue } from '../core/fair-queue.ts';
import type { SendWindow } from './flow-window.ts';

/** A longer request is sent in pieces, so that other calls come between them. */
const PIECE_BYTES = 65_536;
const MESSAGE_BYTES = 262_144;
const NOTHING = Buffer.alloc(0);

/**
 * Sends the requests of one bidirectional call, each when the service has room for it.
 * @param requests serialized
 * @param write resolves when the frame is written, and never if the call is over
 * @throws what `requests` throws
 */
export async function sendRequests(
  requests: AsyncIterator<Uint8Array>,
  window: SendWindow,
  write: (frame: Omit<RequestFrame, 'id'>) => Promise<void>,
): Promise<void> {
  for (;;) {
    const { done, value: request } = await requests.next();
    if (done) return write({ request: NOTHING, more: false, last: true });
    for (let from = 0; from === 0 || from < request.length; from += PIECE_BYTES) {
      const to = from + PIECE_BYTES;
      const more = to < request.length;
      await write({ request: request.subarray(from, to) as Buffer, more, last: false });
    }
    await window.take(request);
  }
}

interface WaitingFrame {
  frame: RequestFrame;
  onWritten: () => void;
}

/** Frames of requests that wait to be written, in turns between organizations. */
export interface RequestFrames {
  /** Resolves when the frame is written. */
  push(organizationId: string, frame: RequestFrame): Promise<void>;
  /** Takes the frames of one message. */
  shift(): WaitingFrame[];
}

/** @param isOpen of the id of a call: frames of one that was given up are dropped */
export function makeRequestFrames(isOpen: (id: number) => boolean): RequestFrames {
  const waiting = fairQueue<WaitingFrame>();
  return {
    push: (organizationId, frame) => new Promise((onWritten) => waiting.push(organizationId, { frame, onWritten })),
    shift() {
      const next = [];
      for (let bytes = 0; bytes < MESSAGE_BYTES && !waiting.isEmpty;) {
        const { item } = waiting.shift()!;
        if (!isOpen(item.frame.id)) continue;
        next.push(item);
        bytes += item.frame.request.length;
      }
      return next;
    },
  };
}
