import type {
  handleServerStreamingCall,
  handleUnaryCall,
  Metadata,
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
} from '@grpc/grpc-js';
import { ServiceError } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { CALLER_LOST, MAX_REPLY_BYTES, PRINCIPAL, REQUEST_ID, TRACEPARENT } from './call.ts';
import type { CarriedCall, Carrier } from './call-carrier.ts';
import type { Call } from './handle.ts';
import type { Peer } from './identity.ts';
import type { MethodOptions } from './method-options.ts';
import { principalOf } from './principal-bytes.ts';
import { toGrpcError, unknownMethod } from './wire-errors.ts';

/** A method and what handles its calls. */
export interface Served {
  path: string;
  options: MethodOptions;
  /** Whether it is bidirectional. */
  requestStream: boolean;
  requestDeserialize(bytes: Buffer): unknown;
  /** Resolves to the serialized reply; for a method with a stream of replies, to nothing when all are sent. */
  handle(call: Call): Promise<Uint8Array | undefined>;
}
export type GrpcCall = ServerUnaryCall<unknown, unknown> | ServerDuplexStream<unknown, unknown> | StreamingCall;
type StreamingCall = ServerWritableStream<unknown, unknown>;

/** Makes a Call of a call that a stream carries. */
export const carriedTo =
  (methods: ReadonlyMap<string, Served>, log: Log) =>
  ({
    method,
    request,
    requests,
    principal,
    requestId,
    maxReplyBytes,
    ...carried
  }: CarriedCall): ReturnType<Served['handle']> => {
    const served = methods.get(method);
    if (!served) return Promise.reject(unknownMethod(method));
    if (served.requestStream !== (requests !== undefined)) {
      log.error({ path: method, requestId }, 'the call is of another kind than its method');
      return Promise.reject(new ServiceError('INTERNAL'));
    }
    const { path, options, handle } = served;
    let message: unknown;
    try {
      if (!requests) message = readRequest(served, request, requestId, log);
    } catch (error) {
      return Promise.reject(error);
    }
    return handle({
      ...carried,
      path,
      options,
      request: message,
      requests: requests && readAll(served, requests, requestId, log),
      requestId: requestId || newId(),
      maxReplyBytes: maxReplyBytes || Number.POSITIVE_INFINITY,
      principal: principalOf(principal),
      log,
    });
  };

function readRequest({ path, requestDeserialize }: Served, bytes: Uint8Array, requestId: string, log: Log): unknown {
  try {
    return requestDeserialize(bytes as Buffer);
  } catch (error) {
    log.error({ path, requestId, error }, 'a request could not be read');
    throw new ServiceError('INTERNAL');
  }
}

async function* readAll(served: Served, requests: AsyncIterable<Uint8Array>, requestId: string, log: Log) {
  for await (const bytes of requests) yield readRequest(served, bytes, requestId, log);
}

type Adapter<H> = (served: Served, carrier: Carrier, peerOf: (call: GrpcCall) => Peer, log: Log) => H;

/** Adapts `handle` to grpc-js: makes a Call of its unary call, and its reply of the outcome. */
export const unary: Adapter<handleUnaryCall<unknown, unknown>> = (served, carrier, peerOf, log) => (call, reply) => {
  served.handle(callOf(call, served, carrier, peerOf(call), log)).then(
    (response) => reply(null, response),
    (error: ServiceError) => reply(toGrpcError(error)),
  );
};

/** The same for a server-streaming call. */
export const serverStreaming: Adapter<handleServerStreamingCall<unknown, unknown>> =
  (served, carrier, peerOf, log) => (call) => {
    const send = (reply: Uint8Array): Promise<void> => new Promise((resolve) => call.write(reply, () => resolve()));
    served.handle({ ...callOf(call, served, carrier, peerOf(call), log), send }).then(
      () => call.end(),
      (error: ServiceError) => call.emit('error', toGrpcError(error)),
    );
  };

function callOf(
  call: ServerUnaryCall<unknown, unknown> | StreamingCall,
  { path, options }: Served,
  carrier: Carrier,
  peer: Peer,
  log: Log,
): Call {
  const aborter = new AbortController();
  onCancelled(call, carrier, (reason) => aborter.abort(reason));
  return {
    path,
    options,
    request: call.request,
    peer,
    principal: principalOf(call.metadata.get(PRINCIPAL)[0] as Buffer | undefined),
    requestId: firstValue(call.metadata, REQUEST_ID) || newId(),
    traceparent: firstValue(call.metadata, TRACEPARENT),
    signal: aborter.signal,
    deadline: deadlineOf(call, options),
    maxReplyBytes: Number(call.metadata.get(MAX_REPLY_BYTES)[0] ?? Number.POSITIVE_INFINITY),
    log,
  };
}

/**
 * Calls `notify` when the call is cancelled. grpc-js reports a cancellation by the caller and a lost connection in the
 * same way. Of a caller that also has a stream, the stream is lost together with the connection: hence setImmediate.
 */
function onCancelled(
  call: ServerUnaryCall<unknown, unknown> | StreamingCall,
  carrier: Carrier,
  notify: (reason: string | undefined) => void,
): void {
  const connection = call.getPeer();
  const hadStream = carrier.hasStream(connection);
  call.on('cancelled', () =>
    setImmediate(() => notify(hadStream && !carrier.hasStream(connection) ? CALLER_LOST : undefined)),
  );
}

const firstValue = (metadata: Metadata, key: string): string => String(metadata.get(key)[0] ?? '');

function deadlineOf(call: Pick<GrpcCall, 'getDeadline'>, options: MethodOptions): number {
  const deadline = Number(call.getDeadline());
  return Number.isFinite(deadline) ? deadline : Date.now() + options.deadlineMs;
}
