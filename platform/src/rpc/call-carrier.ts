import { status, type ServerDuplexStream } from '@grpc/grpc-js';
import type { AnswerFrame, CarryRequest, CallFrame, CarryResponse, WindowUpdate } from 'proto/platform/v1/calls.ts';
import type { ServiceError } from '../core/errors.ts';
import { makeAnswerQueue } from './answer-queue.ts';
import { CALLER_LOST } from './call.ts';
import { keepDeadlines } from './deadlines.ts';
import { makeFlushSoon } from './flush-soon.ts';
import type { Peer } from './identity.ts';
import { makeOpenItems } from '../core/open-items.ts';
import { makeSendWindow, type SendWindow } from './flow-window.ts';
import { makeIncomingRequests, type IncomingRequests } from './incoming-requests.ts';
import { toStatus } from './wire-errors.ts';

/** One call that a stream carries. */
export interface CarriedCall extends Omit<CallFrame, 'id' | 'timeoutMs' | 'windowBytes' | 'requestsFollow'> {
  /** The other end of the stream. */
  peer: Peer;
  /** Milliseconds since the epoch. */
  deadline: number;
  /** Aborted when the caller cancels, the deadline passes, or with CALLER_LOST. */
  signal: AbortSignal;
  /** Of a bidirectional call: each request, serialized. */
  requests?: AsyncIterable<Uint8Array> | undefined;
  /** Of a call with a stream of replies: sends one serialized reply. Resolves when the next one may be sent. */
  send?: ((reply: Uint8Array) => Promise<void>) | undefined;
}
/** Resolves to the serialized reply, or to nothing when all replies are sent. Rejects with ServiceError. */
export type HandleCarried = (call: CarriedCall) => Promise<Uint8Array | undefined>;

interface OpenCall {
  aborter: AbortController;
  /** Milliseconds since the epoch. */
  deadline: number;
  window: SendWindow | undefined;
  requests: IncomingRequests | undefined;
}

type CallsStream = ServerDuplexStream<CarryRequest, CarryResponse>;

export interface Carrier {
  /** Serves one stream. */
  carry(stream: CallsStream): void;
  /** @param connection as grpc-js names the peer of a call: its host and port */
  hasStream(connection: string): boolean;
  /**
   * Tells all callers to send further calls elsewhere, and takes no further streams. Resolves when the streams have
   * ended: each when its caller has the answers to all calls on its connection.
   */
  goAway(): Promise<void>;
}

/** Serves the calls of streams (proto/platform/v1/calls.proto). All calls of one message begin together. */
export function makeCarrier(handle: HandleCarried, peerOf: (stream: CallsStream) => Peer): Carrier {
  /** What tells the caller of each open stream to go away, and the connection of the stream. */
  const streams = new Map<() => void, string>();
  const gone = Promise.withResolvers<void>();
  let isGoing = false;
  const goneIfNone = (): void => {
    if (isGoing && streams.size === 0) gone.resolve();
  };

  return {
    carry(stream) {
      if (isGoing) return void stream.emit('error', { code: status.UNAVAILABLE, details: 'The service is stopping' });
      const goAway = carryStream(stream, peerOf(stream), handle, () => {
        streams.delete(goAway);
        goneIfNone();
      });
      streams.set(goAway, stream.getPeer());
      // The caller counts a stream as open when it has this.
      stream.sendMetadata(stream.metadata.clone());
    },
    hasStream: (connection) => [...streams.values()].includes(connection),
    goAway() {
      isGoing = true;
      for (const goAway of streams.keys()) goAway();
      goneIfNone();
      return gone.promise;
    },
  };
}

/** @returns a function that tells the caller to go away */
function carryStream(stream: CallsStream, peer: Peer, handle: HandleCarried, onClosed: () => void): () => void {
  const open = makeOpenItems<OpenCall>();
  const watchDeadlines = keepDeadlines(
    open,
    ({ deadline }) => deadline,
    // The caller finds out by itself, and earlier: the request took time to arrive.
    (id) => cancel(id),
  );
  const answers = makeAnswerQueue();
  let windowUpdates: WindowUpdate[] = [];
  let goAway = false;
  let callerEnded = false;
  let blocked = false;
  const flushSoon = makeFlushSoon(flush);

  function begin({ id, timeoutMs, windowBytes, requestsFollow, ...frame }: CallFrame): void {
    const aborter = new AbortController();
    const deadline = Date.now() + timeoutMs;
    const window = windowBytes > 0 ? makeSendWindow(windowBytes) : undefined;
    const send = window && ((reply: Uint8Array) => (answer(id, reply, true), window.take(reply)));
    const onConsumed = (bytes: number): void => {
      if (!open.get(id)) return;
      windowUpdates.push({ id, bytes });
      flushSoon();
    };
    const requests = requestsFollow ? makeIncomingRequests(onConsumed) : undefined;
    open.set(id, { aborter, deadline, window, requests });
    watchDeadlines();
    handle({ ...frame, peer, deadline, signal: aborter.signal, send, requests })
      .then(
        (reply = NOTHING) => answer(id, reply, false),
        (error: ServiceError) => answer(id, NOTHING, false, toStatus(error)),
      )
      .finally(() => {
        open.delete(id);
        // whoever still reads them would wait for ever
        requests?.abandon();
        flushSoon();
      });
  }

  /** Nobody waits for the answer of a call that was cancelled, or whose deadline has passed. */
  function answer(id: number, reply: Uint8Array, isOpen: boolean, error?: AnswerFrame['error']): void {
    const call = open.get(id);
    if (!call) return;
    if (call.deadline <= Date.now()) return cancel(id);
    answers.push({ id, reply: reply as Buffer, more: false, error, open: isOpen });
    flushSoon();
  }

  function cancel(id: number): void {
    abort(id, open.get(id));
    answers.drop(id);
  }

  function abort(id: number, call: OpenCall | undefined, reason?: string): void {
    open.delete(id);
    call?.aborter.abort(reason);
    call?.requests?.abandon();
  }

  function flush(): void {
    while (!blocked) {
      const next = answers.shift();
      if (next.length === 0 && windowUpdates.length === 0 && !goAway) break;
      blocked = !stream.write({ answers: next, goAway, windowUpdates });
      windowUpdates = [];
      goAway = false;
    }
    if (callerEnded && open.size === 0 && answers.isEmpty) stream.end();
  }

  function close(): void {
    open.forEach((call, id) => abort(id, call, CALLER_LOST));
    blocked = true;
    onClosed();
  }

  stream.on('data', ({ calls, cancelled, windowUpdates: updates, requests }) => {
    for (const { id, bytes } of updates) open.get(id)?.window?.update(bytes);
    for (const id of cancelled) cancel(id);
    for (const call of calls) begin(call);
    for (const frame of requests) open.get(frame.id)?.requests?.receive(frame);
  });
  stream.on('drain', () => {
    blocked = false;
    flush();
  });
  stream.on('end', () => {
    callerEnded = true;
    flush();
  });
  stream.on('cancelled', close);
  stream.on('error', close);
  stream.on('finish', close);
  return () => {
    goAway = true;
    flush();
  };
}

const NOTHING = Buffer.alloc(0);
