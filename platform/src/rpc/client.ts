import { setTimeout as delay } from 'node:timers/promises';
import type { CallOptions, ServiceClient, ServiceDefinition } from './call.ts';
import { makeDialer, type Target } from './dialer.ts';
import { ServiceError } from '../core/errors.ts';
import { methodOptionsOf, type MethodOptions } from './method-options.ts';
import { Principal } from '../core/principal.ts';
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

const RETRY_DELAYS_MS = [50, 200];

export interface Connection {
  call: UnaryCall;
  close(): void;
}

/**
 * Connects to the replicas of one service. Each call gets its deadline and its principal; repeatable methods are
 * retried.
 * @param given.address host:port; several replicas comma-separated
 * @param given.carriedBy streams are for a process that makes many calls
 */
export function openConnection({
  address,
  carriedBy = 'streams',
  ...target
}: Target & { address: string; carriedBy?: 'streams' | 'unary calls' }): Connection {
  const open = carriedBy === 'streams' ? openReplicas : openUnary;
  const transport = open(address.split(','), makeDialer(target));
  const once = async (
    method: CallableMethod,
    { repeatable }: MethodOptions,
    request: object,
    { principal, requestId, signal, maxReplyBytes = 0 }: CallOptions,
    deadline: number,
  ): Promise<object> => {
    const reply = await transport.call({
      method: method.path,
      request: method.requestSerialize(request),
      organizationId: principal.organizationId,
      principal: Buffer.from(Principal.encode(principal).finish()),
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
