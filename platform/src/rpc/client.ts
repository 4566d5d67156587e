import { credentials, type ChannelOptions } from '@grpc/grpc-js';
import { setTimeout as delay } from 'node:timers/promises';
import type { CallOptions, ServiceClient, ServiceDefinition } from './call.ts';
import { ServiceError } from '../core/errors.ts';
import type { Identity } from './identity.ts';
import { methodOptionsOf, type MethodOptions } from './method-options.ts';
import { openReplicas } from './replicas.ts';
import { openUnary } from './unary.ts';

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
const RETRY_DELAYS_MS = [50, 200];

export interface Connection {
  call: UnaryCall;
  close(): void;
}

/**
 * Connects to the replicas of one service. Each call gets its deadline and the signed identity; repeatable methods are
 * retried.
 * @param given.address host:port; several replicas comma-separated
 * @param given.audience name of the called process
 * @param given.carriedBy streams are for a process that makes many calls
 */
export function openConnection({
  address,
  audience,
  identity,
  carriedBy = 'streams',
}: {
  address: string;
  audience: string;
  identity: Identity;
  carriedBy?: 'streams' | 'unary calls';
}): Connection {
  const open = carriedBy === 'streams' ? openReplicas : openUnary;
  const transport = open(address.split(','), credentials.createInsecure(), CHANNEL);
  const once = async (
    method: CallableMethod,
    { repeatable }: MethodOptions,
    request: object,
    { principal, requestId, signal, maxReplyBytes = 0 }: CallOptions,
    deadline: number,
  ): Promise<object> => {
    const assertion = await identity.sign(audience, principal);
    const reply = await transport.call({
      method: method.path,
      request: method.requestSerialize(request),
      assertion,
      requestId,
      maxReplyBytes,
      signal,
      deadline,
      repeatable,
    });
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
    close: () => transport.close(),
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
