import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { AnswerFrame, CarryRequest, CallFrame, CarryResponse } from 'proto/platform/v1/calls.ts';
import { ServiceError } from '../core/errors.ts';
import { CALLER_LOST } from './call.ts';
import { keepDeadlines } from './deadlines.ts';
import type { Peer } from './identity.ts';
import { toStatus } from './wire-errors.ts';

/** A reply of more bytes is sent in pieces, so that the replies of other calls come between them. */
const PIECE_BYTES = 65_536;
const MESSAGE_BYTES = 262_144;

/** One call that a stream carries. */
export interface CarriedCall extends Omit<CallFrame, 'id' | 'timeoutMs'> {
  /** The other end of the stream. */
  peer: Peer;
  /** Milliseconds since the epoch. */
  deadline: number;
  /** Aborted when the caller cancels, the deadline passes, or with CALLER_LOST. */
  signal: AbortSignal;
}

type CallsStream = ServerDuplexStream<CarryRequest, CarryResponse>;

export interface Carrier {
  /** Serves one stream. */
  carry(stream: CallsStream): void;
  /** @param connection as grpc-js names the peer of a call: its host and port */
  hasStream(connection: string): boolean;
  /** Tells all callers to send further calls elsewhere. Their streams end when they have their answers. */
  goAway(): void;
}

/**
 * Serves the calls of streams (proto/platform/v1/calls.proto). All calls of one message begin in one turn.
 * @param handle resolves to the serialized reply; rejects with ServiceError
 */
export function makeCarrier(
  handle: (call: CarriedCall) => Promise<Uint8Array>,
  peerOf: (stream: CallsStream) => Peer,
): Carrier {
  /** What tells the caller of each open stream to go away, and the connection of the stream. */
  const streams = new Map<() => void, string>();
  let isGoing = false;

  return {
    carry(stream) {
      const goAway = carryStream(stream, peerOf(stream), handle, () => streams.delete(goAway));
      streams.set(goAway, stream.getPeer());
      // The caller counts a stream as open when it has this.
      stream.sendMetadata(stream.metadata.clone());
      if (isGoing) goAway();
    },
    hasStream: (connection) => [...streams.values()].includes(connection),
    goAway() {
      isGoing = true;
      for (const goAway of streams.keys()) goAway();
    },
  };
}

/** @returns a function that tells the caller to go away */
function carryStream(
  stream: CallsStream,
  peer: Peer,
  handle: (call: CarriedCall) => Promise<Uint8Array>,
  onClosed: () => void,
): () => void {
  const open = new Map<number, { aborter: AbortController; deadline: number }>();
  const watchDeadlines = keepDeadlines(
    open,
    ({ deadline }) => deadline,
    (_id, { aborter }) => aborter.abort(),
  );
  const answers: AnswerFrame[] = [];
  /** Replies of which pieces are left. The first one is next. */
  const long: { id: number; reply: Uint8Array; from: number }[] = [];
  let goAway = false;
  let callerEnded = false;
  let blocked = false;
  let flushing: NodeJS.Immediate | undefined;

  function begin({ id, timeoutMs, ...frame }: CallFrame): void {
    const aborter = new AbortController();
    const deadline = Date.now() + timeoutMs;
    open.set(id, { aborter, deadline });
    watchDeadlines();
    handle({ ...frame, peer, deadline, signal: aborter.signal })
      .then(
        (reply) => {
          if (reply.length > PIECE_BYTES && open.has(id)) long.push({ id, reply, from: 0 });
          else answer({ id, reply: reply as Buffer, more: false, error: undefined });
        },
        (error: ServiceError) => answer({ id, reply: NOTHING, more: false, error: toStatus(error) }),
      )
      .finally(() => {
        open.delete(id);
        flushing ??= setImmediate(flush);
      });
  }

  /** Nobody waits for the answer of a call that was cancelled. */
  function answer(frame: AnswerFrame): void {
    if (open.has(frame.id)) answers.push(frame);
  }

  function cancel(id: number): void {
    open.get(id)?.aborter.abort();
    const at = long.findIndex((reply) => reply.id === id);
    if (at >= 0) long.splice(at, 1);
    else open.delete(id);
  }

  function flush(): void {
    clearImmediate(flushing);
    flushing = undefined;
    while (!blocked) {
      const next = nextAnswers();
      if (next.length === 0 && !goAway) break;
      blocked = !stream.write({ answers: next, goAway });
      goAway = false;
    }
    if (callerEnded && open.size === 0 && answers.length === 0 && long.length === 0) stream.end();
  }

  function nextAnswers(): AnswerFrame[] {
    const next: AnswerFrame[] = [];
    for (let bytes = 0; bytes < MESSAGE_BYTES && answers.length > 0;) {
      const frame = answers.shift()!;
      bytes += frame.reply.length;
      next.push(frame);
    }
    const reply = long.shift();
    if (reply) {
      const to = reply.from + PIECE_BYTES;
      const more = to < reply.reply.length;
      next.push({ id: reply.id, reply: reply.reply.subarray(reply.from, to) as Buffer, more, error: undefined });
      if (more) long.push({ ...reply, from: to });
    }
    return next;
  }

  function close(): void {
    clearImmediate(flushing);
    for (const { aborter } of open.values()) aborter.abort(CALLER_LOST);
    open.clear();
    blocked = true;
    onClosed();
  }

  stream.on('data', ({ calls, cancelled }) => {
    for (const id of cancelled) cancel(id);
    for (const call of calls) begin(call);
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
