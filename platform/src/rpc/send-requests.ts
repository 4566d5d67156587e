import type { RequestFrame } from 'proto/platform/v1/calls.ts';
import { fairQueue } from '../core/fair-queue.ts';
import { makeSendWindow, WINDOW_BYTES, type SendWindow } from './flow-window.ts';

/** A longer request is sent in pieces, so that other calls come between them. */
const PIECE_BYTES = 65_536;
const MESSAGE_BYTES = 262_144;
const NOTHING = Buffer.alloc(0);

type Write = (frame: Omit<RequestFrame, 'id'>) => Promise<void>;

/** The requests of one bidirectional call that are being sent. */
export interface SentRequests {
  window: SendWindow;
  /** The call is over: nothing waits for the next request any longer. */
  stop(): void;
}

/**
 * Sends the requests of one bidirectional call, each when the service has room for it.
 * @param requests serialized
 * @param write resolves when the frame is written, and never if the call is over
 * @param onError what `requests` throws
 */
export function startRequests(
  requests: AsyncIterable<Uint8Array>,
  write: Write,
  onError: (error: Error) => void,
): SentRequests {
  const window = makeSendWindow(WINDOW_BYTES);
  let source: AsyncIterator<Uint8Array> | undefined;
  const sending = async (): Promise<void> => sendAll((source = requests[Symbol.asyncIterator]()), window, write);
  sending().catch(onError);
  return { window, stop: () => void source?.return?.().catch(() => undefined) };
}

async function sendAll(requests: AsyncIterator<Uint8Array>, window: SendWindow, write: Write): Promise<void> {
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
