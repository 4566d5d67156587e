import { Client, credentials, Metadata, type ChannelOptions, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { setTimeout as delay } from 'node:timers/promises';
import { MAX_REPLY_BYTES, type CallOptions, type ServiceClient, type ServiceDefinition } from './call.ts';
import { ServiceError } from '../core/errors.ts';
import type { OutgoingCall } from './call-stream.ts';
import type { Identity } from './identity.ts';
import { methodOptionsOf, type MethodOptions } from './method-options.ts';
import { openReplicas } from './replicas.ts';
import { fromGrpcError } from './wire-errors.ts';

/** One method as @grpc/proto-loader and ts-proto both describe it. */
export interface CallableMethod {
  path: string;
  requestSerialize(value: object): Buffer;
  responseDeserialize(bytes: Buffer): object;
}
/** Makes one unary call to one service. Rejects with ServiceError. */
export type UnaryCall = (method: CallableMethod, request: object, options: CallOptions) => Promise<object>;

const CHANNEL: ChannelOptions = {
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // Enough for a page of 100 memory objects of the largest allowed size, escaped as JSON.
  'grpc.max_receive_message_length': 64 << 20,
};
/** A larger request is sent by a gRPC call of its own, so that others do not wait for it. */
const MAX_FRAME_BYTES = 65_536;
const RETRY_DELAYS_MS = [50, 200];

export interface Connection {
  call: UnaryCall;
  close(): void;
}

/**
 * Opens streams to the replicas of one service. Each call gets its deadline and the signed identity; repeatable methods
 * are retried.
 * @param address host:port; several replicas comma-separated
 * @param audience name of the called process
 */
export function openConnection({
  address,
  audience,
  identity,
}: {
  address: string;
  audience: string;
  identity: Identity;
}): Connection {
  const replicas = openReplicas(address.split(','), credentials.createInsecure(), CHANNEL);
  const once = async (
    method: CallableMethod,
    { repeatable }: MethodOptions,
    request: object,
    { principal, requestId, signal, maxReplyBytes = 0 }: CallOptions,
    deadline: number,
  ): Promise<object> => {
    const assertion = await identity.sign(audience, principal);
    const bytes = method.requestSerialize(request);
    const call = {
      method: method.path,
      request: bytes,
      assertion,
      requestId,
      maxReplyBytes,
      signal,
      deadline,
      repeatable,
    };
    const reply = await (bytes.length > MAX_FRAME_BYTES ? callAlone(replicas.unary(), call) : replicas.call(call));
    return method.responseDeserialize(reply as Buffer);
  };
  return {
    async call(method, request, options) {
      const methodOptions = methodOptionsOf(method.path);
      const deadline = Math.min(Date.now() + methodOptions.deadlineMs, options.deadline ?? Number.POSITIVE_INFINITY);
      for (const retryDelayMs of methodOptions.repeatable ? RETRY_DELAYS_MS : []) {
        try {
          return await once(method, methodOptions, request, options, deadline);
        } catch (error) {
          const retry =
            error instanceof ServiceError && error.reason === 'UNAVAILABLE' && Date.now() + retryDelayMs < deadline;
          if (!retry) throw error;
          await delay(retryDelayMs);
        }
      }
      return once(method, methodOptions, request, options, deadline);
    },
    close: () => replicas.close(),
  };
}

/** Typed client over a connection: `client.reserve(request, options)`. */
export function clientOf<D extends ServiceDefinition>(definition: D, call: UnaryCall): ServiceClient<D> {
  const methods = Object.entries(definition).map(([name, method]) => [
    name,
    (request: object, options: CallOptions) => call(method, request, options),
  ]);
  return Object.fromEntries(methods) as ServiceClient<D>;
}

/** A gRPC call of its own. */
function callAlone(client: Client, call: OutgoingCall): Promise<Uint8Array> {
  const { method, request, assertion, requestId, maxReplyBytes, signal, deadline, repeatable } = call;
  const metadata = new Metadata();
  metadata.set('assertion', assertion);
  metadata.set('x-request-id', requestId);
  if (maxReplyBytes > 0) metadata.set(MAX_REPLY_BYTES, String(maxReplyBytes));
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new ServiceError('CLIENT_GONE'));
    const cancel = () => grpc.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    const grpc = client.makeUnaryRequest(
      method,
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
      request,
      metadata,
      { deadline },
      (error: GrpcError | null, reply?: Buffer) => {
        signal?.removeEventListener('abort', cancel);
        if (error) reject(fromGrpcError(error, repeatable));
        else resolve(reply!);
      },
    );
  });
}
