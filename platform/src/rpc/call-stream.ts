import type { Client, ClientDuplexStream, ServiceError as GrpcError } from '@grpc/grpc-js';
import { CallsServiceService, type CarryRequest, type CallFrame, type CarryResponse } from 'proto/platform/v1/calls.ts';
import { ServiceError } from '../core/errors.ts';
import { fairQueue } from '../core/fair-queue.ts';
import { keepDeadlines } from './deadlines.ts';
import { fromStatus } from './wire-errors.ts';

/** A message is sent when it has so many calls, so that the service begins with them, and at the end of each turn. */
const CALLS_PER_MESSAGE = 16;
/** Further calls wait until others are answered. */
const MAX_OPEN_CALLS = 2_000;
const END_MS = 1_000;

export interface OutgoingCall extends Omit<CallFrame, 'id' | 'timeoutMs'> {
  /** Calls that wait are sent in turns between organizations. */
  organizationId: string;
  /** Milliseconds since the epoch. */
  deadline: number;
  signal?: AbortSignal;
  /** A call whose outcome is unknown may be repeated. */
  repeatable: boolean;
}

/** The call has left this process by no stream: it can be sent by another one. */
export class NeverSentError extends Error {}

/** The calls of this process to one replica of a service, on one gRPC stream. */
export interface CallStream {
  readonly state: 'connecting' | 'open' | 'retiring' | 'closed';
  /** Calls that are not answered yet. */
  readonly load: number;
  /** @returns the serialized reply. @throws ServiceError, NeverSentError */
  call(call: OutgoingCall): Promise<Uint8Array>;
  /** Takes no further calls, and closes when all are answered. */
  retire(): void;
}

interface Pending {
  call: OutgoingCall;
  sent: boolean;
  pieces: Uint8Array[];
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
  const pending = new Map<number, Pending>();
  const waiting = fairQueue<number>();
  const watchDeadlines = keepDeadlines(
    pending,
    ({ call }) => call.deadline,
    (id, { call, sent }) => {
      const cause = new Error('The deadline of the call has passed');
      giveUp(id, new ServiceError(sent && !call.repeatable ? 'OUTCOME_UNKNOWN' : 'UNAVAILABLE', undefined, { cause }));
    },
  );
  let cancelled: number[] = [];
  let state: CallStream['state'] = 'connecting';
  let lastId = 0;
  let sentCalls = 0;
  let blocked = false;
  let flushing: NodeJS.Immediate | undefined;
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
        if (state === 'retiring' || state === 'closed') return reject(new NeverSentError());
        if (call.signal?.aborted) return reject(new ServiceError('CLIENT_GONE'));
        const id = (lastId = (lastId + 1) >>> 0 || 1);
        const abandon = (): void => giveUp(id, new ServiceError('CLIENT_GONE'));
        call.signal?.addEventListener('abort', abandon, { once: true });
        pending.set(id, {
          call,
          sent: false,
          pieces: [],
          settle(error, reply) {
            call.signal?.removeEventListener('abort', abandon);
            if (error) reject(error);
            else resolve(reply!);
          },
        });
        waiting.push(call.organizationId, id);
        watchDeadlines();
        if (pending.size - sentCalls >= CALLS_PER_MESSAGE) flush();
        else flushing ??= setImmediate(flush);
      }),
    retire() {
      if (state === 'closed' || state === 'retiring') return;
      if (state === 'connecting') return grpc.cancel();
      change('retiring');
      closeWhenAnswered();
    },
  };

  function change(next: CallStream['state']): void {
    state = next;
    onState(stream);
  }

  /** Takes the call off the stream. The service is told if it has the call and does not know yet that it is over. */
  function giveUp(id: number, error: Error): void {
    const one = pending.get(id);
    if (!one) return;
    if (one.sent) {
      cancelled.push(id);
      flushing ??= setImmediate(flush);
    }
    settle(id, one, error);
  }

  function settle(id: number, one: Pending, error: Error | undefined, reply?: Uint8Array): void {
    pending.delete(id);
    if (one.sent) sentCalls--;
    one.settle(error, reply);
    closeWhenAnswered();
  }

  function closeWhenAnswered(): void {
    if (state !== 'retiring' || pending.size > 0) return;
    setImmediate(() => grpc.end());
    // A service that does not answer is left.
    leaving ??= setTimeout(() => grpc.cancel(), END_MS);
  }

  function flush(): void {
    clearImmediate(flushing);
    flushing = undefined;
    while (!blocked && (state === 'open' || state === 'retiring')) {
      const calls = nextCalls();
      if (calls.length === 0 && cancelled.length === 0) return;
      blocked = !grpc.write({ calls, cancelled });
      cancelled = [];
    }
  }

  function nextCalls(): CallFrame[] {
    const frames: CallFrame[] = [];
    const now = Date.now();
    while (frames.length < CALLS_PER_MESSAGE && sentCalls < MAX_OPEN_CALLS && !waiting.isEmpty) {
      const id = waiting.shift()!.item;
      const one = pending.get(id);
      // One that was given up meanwhile
      if (!one) continue;
      const { deadline, method, request, principal, requestId, maxReplyBytes } = one.call;
      frames.push({
        id,
        method,
        request,
        principal,
        requestId,
        maxReplyBytes: uint32(maxReplyBytes),
        timeoutMs: Math.max(1, uint32(deadline - now)),
      });
      one.sent = true;
      sentCalls++;
    }
    return frames;
  }

  function onClosed(cause: GrpcError | undefined): void {
    if (state === 'closed') return;
    clearTimeout(leaving);
    for (const [id, one] of [...pending]) settle(id, one, lost(one, cause));
    change('closed');
  }

  grpc.on('metadata', () => {
    if (state === 'connecting') change('open');
    flush();
  });
  grpc.on('drain', () => {
    blocked = false;
    flush();
  });
  grpc.on('data', ({ answers, goAway }) => {
    for (const { id, reply, more, error } of answers) {
      const one = pending.get(id);
      // The answer of a call that was given up
      if (!one) continue;
      if (error) settle(id, one, fromStatus(error) ?? new ServiceError('INTERNAL'));
      else if (more || one.pieces.length > 0) {
        one.pieces.push(reply);
        if (!more) settle(id, one, undefined, Buffer.concat(one.pieces));
      } else settle(id, one, undefined, reply);
    }
    if (goAway) stream.retire();
    if (!waiting.isEmpty) flush();
  });
  grpc.on('error', onClosed);
  grpc.on('end', () => onClosed(undefined));
  return stream;
}

/** A number that could not be serialized would end the stream, with all its calls. */
const uint32 = (value: number): number => Math.min(Math.max(0, Math.floor(value)), 2 ** 32 - 1);

/** What a call gets whose connection was lost. */
function lost({ call, sent }: Pending, cause: GrpcError | undefined): Error {
  if (!sent) return new NeverSentError(undefined, { cause });
  return new ServiceError(call.repeatable ? 'UNAVAILABLE' : 'OUTCOME_UNKNOWN', undefined, { cause });
}
