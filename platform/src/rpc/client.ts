import { Client, credentials, Metadata, type ChannelOptions, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { setTimeout as delay } from 'node:timers/promises';
import { MAX_REPLY_BYTES, type CallOptions, type ServiceClient, type ServiceDefinition } from './call.ts';
import { ServiceError } from '../core/errors.ts';
import type { Identity } from './identity.ts';
import { methodOptionsOf, type MethodOptions } from './method-options.ts';
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
/**
 * Calls go to the replicas in turn. A single address keeps the default load balancing, with which the call that finds
 * the connection lost opens a new one.
 */
const REPLICAS_CHANNEL: ChannelOptions = {
  ...CHANNEL,
  'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
};
const RETRY_DELAYS_MS = [50, 200];

export interface Connection {
  call: UnaryCall;
  close(): void;
}

/**
 * Opens a channel to one service. Each call gets its deadline and the signed identity; repeatable methods are retried.
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
  const hasReplicas = address.includes(',');
  const client = new Client(
    hasReplicas ? `ipv4:${address}` : address,
    credentials.createInsecure(),
    hasReplicas ? REPLICAS_CHANNEL : CHANNEL,
  );
  const once = async (
    method: CallableMethod,
    { repeatable }: MethodOptions,
    request: object,
    options: CallOptions,
    deadline: number,
  ): Promise<object> => {
    const metadata = new Metadata();
    metadata.set('assertion', await identity.sign(audience, options.principal));
    metadata.set('x-request-id', options.requestId);
    if (options.maxReplyBytes !== undefined) metadata.set(MAX_REPLY_BYTES, String(options.maxReplyBytes));
    return new Promise((resolve, reject) => {
      if (options.signal?.aborted) return reject(new ServiceError('CLIENT_GONE'));
      const cancel = () => call.cancel();
      options.signal?.addEventListener('abort', cancel, { once: true });
      const call = client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadata,
        { deadline },
        (error: GrpcError | null, response?: object) => {
          options.signal?.removeEventListener('abort', cancel);
          if (error) reject(fromGrpcError(error, repeatable));
          else resolve(response as object);
        },
      );
    });
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
    close: () => client.close(),
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
