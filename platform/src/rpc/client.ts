import { Metadata, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { setTimeout as delay } from 'node:timers/promises';
import {
  MAX_REPLY_BYTES,
  PRINCIPAL,
  REQUEST_ID,
  type CallOptions,
  type ServiceClient,
  type ServiceDefinition,
} from './call.ts';
import { openChannel, type ChannelTarget } from './channel.ts';
import { ServiceError } from '../core/errors.ts';
import { methodOptionsOf, type MethodOptions } from './method-options.ts';
import { Principal } from '../core/principal.ts';
import { fromGrpcError } from './wire-errors.ts';

/** One method as @grpc/proto-loader and ts-proto both describe it. */
export interface CallableMethod {
  path: string;
  requestSerialize(value: object): Buffer;
  responseDeserialize(bytes: Buffer): object;
}
/** Makes one unary call to one service. Rejects with ServiceError. */
export type UnaryCall = (method: CallableMethod, request: object, options: CallOptions) => Promise<object>;

const RETRY_DELAYS_MS = [50, 200];

export interface Connection {
  call: UnaryCall;
  close(): void;
}

/** Opens connections to one service. Each call gets its deadline and its principal; repeatable methods are retried. */
export function openConnection(target: ChannelTarget): Connection {
  const channel = openChannel(target);
  const once = (
    method: CallableMethod,
    { repeatable }: MethodOptions,
    request: object,
    options: CallOptions,
    deadline: number,
  ): Promise<object> => {
    const metadata = new Metadata();
    metadata.set(PRINCIPAL, Buffer.from(Principal.encode(options.principal).finish()));
    metadata.set(REQUEST_ID, options.requestId);
    if (options.maxReplyBytes !== undefined) metadata.set(MAX_REPLY_BYTES, String(options.maxReplyBytes));
    return new Promise((resolve, reject) => {
      if (options.signal?.aborted) return reject(new ServiceError('CLIENT_GONE'));
      const cancel = () => call.cancel();
      options.signal?.addEventListener('abort', cancel, { once: true });
      const { client, done } = channel.take();
      const call = client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadata,
        { deadline },
        (error: GrpcError | null, response?: object) => {
          options.signal?.removeEventListener('abort', cancel);
          done();
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
    close: () => channel.close(),
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
