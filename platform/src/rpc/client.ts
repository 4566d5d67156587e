import { Client, credentials, Metadata, type ChannelOptions, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { setTimeout as delay } from 'node:timers/promises';
import type { CallOptions, ServiceClient, ServiceDefinition } from './call.ts';
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
/** One unary call to one service. Rejects with ServiceError. */
export type Caller = (method: CallableMethod, request: object, options: CallOptions) => Promise<object>;

const CHANNEL: ChannelOptions = {
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // a page of a hundred objects of the largest legal size, escaped
  'grpc.max_receive_message_length': 64 << 20,
};
/** Every replica takes its share. One address alone is connected again by the very call that finds it gone. */
const REPLICAS: ChannelOptions = {
  ...CHANNEL,
  'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
};
const RETRY_DELAYS_MS = [50, 200];

export interface Connection {
  call: Caller;
  close(): void;
}

/** A channel to one service: deadline, identity and repeats in one place. */
export function openConnection({
  address,
  audience,
  identity,
}: {
  address: string;
  audience: string;
  identity: Identity;
}): Connection {
  const several = address.includes(',');
  const client = new Client(
    several ? `ipv4:${address}` : address,
    credentials.createInsecure(),
    several ? REPLICAS : CHANNEL,
  );
  const once = async (
    method: CallableMethod,
    policy: MethodOptions,
    request: object,
    options: CallOptions,
    deadline: number,
  ): Promise<object> => {
    const metadata = new Metadata();
    metadata.set('assertion', await identity.sign(audience, options.principal));
    metadata.set('x-request-id', options.requestId);
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
          if (error) reject(fromGrpcError(error, policy.repeatable));
          else resolve(response as object);
        },
      );
    });
  };
  return {
    async call(method, request, options) {
      const policy = methodOptionsOf(method.path);
      const deadline = Math.min(Date.now() + policy.deadlineMs, options.deadline ?? Number.POSITIVE_INFINITY);
      for (const retryDelayMs of policy.repeatable ? RETRY_DELAYS_MS : []) {
        try {
          return await once(method, policy, request, options, deadline);
        } catch (error) {
          const again =
            error instanceof ServiceError && error.reason === 'UNAVAILABLE' && Date.now() + retryDelayMs < deadline;
          if (!again) throw error;
          await delay(retryDelayMs);
        }
      }
      return once(method, policy, request, options, deadline);
    },
    close: () => client.close(),
  };
}

/** Typed client over a connection: `client.reserve(request, options)`. */
export function clientOf<D extends ServiceDefinition>(definition: D, call: Caller): ServiceClient<D> {
  const methods = Object.entries(definition).map(([name, method]) => [
    name,
    (request: object, options: CallOptions) => call(method, request, options),
  ]);
  return Object.fromEntries(methods) as ServiceClient<D>;
}
