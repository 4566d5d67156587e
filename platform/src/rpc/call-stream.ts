import type { Client, ClientDuplexStream, ServiceError as GrpcError } from '@grpc/grpc-js';
import {
  CallsServiceService,
  type CallFrame,
  type CarryRequest,
  type CarryResponse,
  type RequestFrame,
  type WindowUpdate,
} from 'proto/platform/v1/calls.ts';
import { ServiceError } from '../core/errors.ts';
import { fairQueue } from '../core/fair-queue.ts';
import { keepDeadlines } from './deadlines.ts';
import { makeFlushSoon } from './flush-soon.ts';
import { makeOpenItems } from '../core/open-items.ts';
import { makeShares } from '../core/shares.ts';
import { frameOf, NeverSentError, type OutgoingCall } from './outgoing-call.ts';
import { makeReceiveQueue, WINDOW_BYTES } from './flow-window.ts';
import { makeRequestFrames, startRequests, type SentRequests } from './send-requests.ts';
import { fromStatus, unanswered } from './wire-errors.ts';

/** In a message: the service answers the first ones while it still reads the others. */
const CALLS_PER_MESSAGE = 16;
/** Further unary calls wait until others are answered. */
const MAX_OPEN_CALLS = 2_000;
/**
 * Further calls that stream replies are refused: they may stay open for long, and hold up no unary call. One
 * organization may have as many as are left for others.
 */
const MAX_STREAMING_CALLS = 1_000;
const END_MS = 1_000;

/** The calls of this process to one replica of a service, on one gRPC stream. */
export interface CallStream {
  readonly state: 'connecting' | 'open' | 'retiring' | 'closed';
  /** Calls that are not answered yet. */
  readonly load: number;
  /** @returns the serialized reply. @throws ServiceError, NeverSentError */
  call(call: OutgoingCall): Promise<Uint8Array>;
  /**
   * The serialized replies of a method that streams them. The call begins when the first one is asked for; to leave the
   * loop cancels it. Throws like `call`; NeverSentError only before the first reply.
   */
  replies(call: OutgoingCall): AsyncIterable<Uint8Array>;
  /**
   * Waits for the turn of a gRPC call of its own on the same connection, and counts it until it is answered.
   * @param isStreaming its replies are streamed
   * @returns what says that it is answered
   * @throws ServiceError, NeverSentError
   */
  beside(call: OutgoingCall, isStreaming?: boolean): Promise<() => void>;
  /** Takes no further calls, and closes when all are answered. */
  retire(): void;
}

interface Pending {
  call: OutgoingCall;
  sent: boolean;
  pieces: Uint8Array[];
  /** Takes each reply of a call that has a stream of them. */
  receive: ((reply: Uint8Array) => void) | undefined;
  /** Of a gRPC call of its own: it begins in place of a frame that is sent. */
  onTurn: ((id: number) => void) | undefined;
  /** Of a bidirectional call that is sent. */
  requests?: SentRequests;
  settle(error: Error | undefined, reply?: Uint8Array): void;
}

/**
 * Opens a stream.
 * @param onState called after each change of state
 */
export function openCallStream(client: Client, onState: (stream: CallStream) => void): CallStream {
  const { path, requestSerialize, responseDeserialize } = CallsServiceService.carry;
  const grpc: ClientDuplexStream<CarryRequest, CarryResponse> = client.makeBidiStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
  );
  const pending = makeOpenItems<Pending>();
  const waiting = fairQueue<number>();
  const requestFrames = makeRequestFrames((id) => pending.get(id) !== undefined);
  const watchDeadlines = keepDeadlines(
    pending,
    ({ call }) => call.deadline,
    (id, { call, sent }) => {
      const cause = new Error('The deadline of the call has passed');
      giveUp(id, unanswered(call.repeatable || !sent, cause));
    },
  );
  let cancelled: number[] = [];
  let windowUpdates: WindowUpdate[] = [];
  let state: CallStream['state'] = 'connecting';
  let closedBy: GrpcError | undefined;
  let lastId = 0;
  let unsentCalls = 0;
  let unaryCalls = 0;
  const streamingCalls = makeShares(MAX_STREAMING_CALLS);
  let isWriting = false;
  const flushSoon = makeFlushSoon(flush);
  let leaving: NodeJS.Timeout | undefined;

  const stream: CallStream = {
    get state() {
      return state;
    },
    get load() {
      return pending.size;
    },
    call: (call) =>
      new Promise((resolve, reject) => {
        begin(call, undefined, (error, reply) => (error ? reject(error) : resolve(reply!)));
      }),
    async *replies(call) {
      const queue = makeReceiveQueue((bytes) => {
        if (pending.get(id) === undefined) return;
        windowUpdates.push({ id, bytes });
        flushSoon();
      });
      const id = begin(call, queue.push, queue.end);
      try {
        for (let reply; (reply = await queue.next());) yield reply;
      } finally {
        giveUp(id, new ServiceError('CLIENT_GONE'));
      }
    },
    beside: (call, isStreaming = false) =>
      new Promise((resolve, reject) => {
        const onTurn = (id: number): void => resolve(() => settle(id, pending.get(id), undefined));
        begin(call, isStreaming ? () => undefined : undefined, (error) => error && reject(error), onTurn);
      }),
    retire() {
      if (state === 'closed' || state === 'retiring') return;
      if (state === 'connecting') return grpc.cancel();
      change('retiring');
      closeWhenAnswered();
    },
  };

  /** The call is sent with others that begin now. @returns its id. @throws NeverSentError, ServiceError */
  function begin(
    call: OutgoingCall,
    receive: Pending['receive'],
    onSettled: Pending['settle'],
    onTurn?: Pending['onTurn'],
  ): number {
    if (state === 'retiring' || state === 'closed')
      throw new NeverSentError(closedBy?.message ?? `The stream is ${state}`, { cause: closedBy });
    if (receive && !streamingCalls.mayTake(call.organizationId))
      throw new NeverSentError('Too many streaming calls are open');
    if (call.signal?.aborted) throw new ServiceError('CLIENT_GONE');
    const id = (lastId = (lastId + 1) >>> 0 || 1);
    const abandon = (): void => giveUp(id, new ServiceError('CLIENT_GONE'));
    call.signal?.addEventListener('abort', abandon, { once: true });
    pending.set(id, {
      call,
      sent: false,
      pieces: [],
      receive,
      onTurn,
      settle(error, reply) {
        call.signal?.removeEventListener('abort', abandon);
        onSettled(error, reply);
      },
    });
    if (receive) streamingCalls.take(call.organizationId);
    waiting.push(call.organizationId, id);
    unsentCalls++;
    watchDeadlines();
    if (unsentCalls >= CALLS_PER_MESSAGE) flush();
    else flushSoon();
    return id;
  }

  function change(next: CallStream['state']): void {
    state = next;
    onState(stream);
  }

  /** Takes the call off the stream. The service is told if it has the call and does not know yet that it is over. */
  function giveUp(id: number, error: Error): void {
    const one = pending.get(id);
    if (!one) return;
    if (one.sent && !one.onTurn) {
      cancelled.push(id);
      flushSoon();
    }
    settle(id, one, error);
  }

  function settle(id: number, one: Pending | undefined, error: Error | undefined, reply?: Uint8Array): void {
    if (!one) return;
    pending.delete(id);
    if (one.receive) streamingCalls.giveBack(one.call.organizationId);
    else if (one.sent) unaryCalls--;
    one.requests?.stop();
    one.settle(error, reply);
    if (!waiting.isEmpty) flushSoon();
    closeWhenAnswered();
  }

  function closeWhenAnswered(): void {
    if (state !== 'retiring' || pending.size > 0) return;
    setImmediate(() => {
      if (!isWriting && !grpc.writableEnded) grpc.end();
    });
    // A service that does not answer is left.
    leaving ??= setTimeout(() => grpc.cancel(), END_MS);
  }

  /** Writes one message. What comes until it is written waits in the fair queue, and shares the next one. */
  function flush(): void {
    if (isWriting || grpc.writableEnded || (state !== 'open' && state !== 'retiring')) return;
    const calls = nextCalls();
    const requests = requestFrames.shift();
    if (calls.length + cancelled.length + windowUpdates.length + requests.length === 0) return;
    isWriting = true;
    grpc.write({ calls, cancelled, windowUpdates, requests: requests.map(({ frame }) => frame) }, () => {
      requests.forEach(({ onWritten }) => onWritten());
      written();
    });
    cancelled = [];
    windowUpdates = [];
    // not earlier: it runs code of the caller, which may give up the call or begin others
    for (const { id, requestsFollow } of calls) if (requestsFollow) beginRequests(id);
  }

  function written(): void {
    isWriting = false;
    flush();
    closeWhenAnswered();
  }

  function nextCalls(): CallFrame[] {
    const frames: CallFrame[] = [];
    const now = Date.now();
    while (frames.length < CALLS_PER_MESSAGE && unaryCalls < MAX_OPEN_CALLS && !waiting.isEmpty) {
      const id = waiting.shift()!.item;
      unsentCalls--;
      const one = pending.get(id);
      // One that was given up meanwhile
      if (!one) continue;
      if (one.onTurn) one.onTurn(id);
      else frames.push(frameOf(id, one.call, one.receive ? WINDOW_BYTES : 0, now));
      one.sent = true;
      if (!one.receive) unaryCalls++;
    }
    return frames;
  }

  function beginRequests(id: number): void {
    const one = pending.get(id);
    if (!one) return;
    const write = (frame: Omit<RequestFrame, 'id'>): Promise<void> => {
      const written = requestFrames.push(one.call.organizationId, { id, ...frame });
      flushSoon();
      return written;
    };
    one.requests = startRequests(one.call.requests!, write, (error) => giveUp(id, error));
    if (!pending.get(id)) one.requests.stop(); // given up by code of the caller, which this has run
  }

  function onClosed(cause: GrpcError | undefined): void {
    if (state === 'closed') return;
    clearTimeout(leaving);
    closedBy = cause;
    state = 'closed';
    const lost = ({ sent, call }: Pending): Error =>
      sent ? unanswered(call.repeatable, cause) : new NeverSentError(undefined, { cause });
    pending.forEach((one, id) => settle(id, one, lost(one)));
    onState(stream);
  }

  grpc.on('metadata', () => {
    if (state === 'connecting') change('open');
    flush();
  });
  grpc.on('data', ({ answers, goAway, windowUpdates: updates }) => {
    for (const { id, bytes } of updates) pending.get(id)?.requests?.window.update(bytes);
    for (const { id, reply, more, error, open } of answers) {
      const one = pending.get(id);
      // The answer of a call that was given up
      if (!one) continue;
      if (error) settle(id, one, fromStatus(error) ?? new ServiceError('INTERNAL'));
      else if (more) one.pieces.push(reply);
      else {
        const whole = one.pieces.length > 0 ? Buffer.concat([...one.pieces.splice(0), reply]) : reply;
        if (open) one.receive?.(whole);
        else settle(id, one, undefined, whole);
      }
    }
    if (goAway) stream.retire();
  });
  grpc.on('error', onClosed);
  grpc.on('end', () => onClosed(undefined));
  return stream;
}
