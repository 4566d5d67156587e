import { setTimeout as delay } from 'node:timers/promises';
import type { CallOptions, ServiceClient, ServiceDefinition } from './call.ts';
import { makeDialer, type Target } from './dialer.ts';
import { ServiceError } from '../core/errors.ts';
import { methodOptionsOf, type MethodOptions } from './method-options.ts';
import { NeverSentError, type OutgoingCall } from './outgoing-call.ts';
import { bytesOf } from './principal-bytes.ts';
import { openReplicas } from './replicas.ts';
import { rpcAttributes } from './interceptors/trace.ts';
import { inSpan, traceparent } from '../telemetry/traces.ts';
import { openUnary, type Transport } from './unary.ts';

/** One method as @grpc/proto-loader and ts-proto both describe it. */
export interface CallableMethod {
  path: string;
  requestStream?: boolean;
  responseStream?: boolean;
  requestSerialize(value: object): Buffer;
  responseDeserialize(bytes: Buffer): object;
}
/** Makes one unary call to one service. Rejects with ServiceError. */
export type UnaryCall = (method: CallableMethod, request: object, options: CallOptions) => Promise<object>;
/** Makes one call of any kind; `request` of a bidirectional one is an async iterable of its requests. */
export interface AnyCall extends UnaryCall {
  (method: CallableMethod & { responseStream: true }, request: object, options: CallOptions): AsyncIterable<object>;
}

/** Before a call is made again: it is repeatable, or no replica was found that it could be sent to. */
const RETRY_DELAYS_MS = [50, 200];

export interface Connection extends Pick<Transport, 'load'> {
  call: AnyCall;
  close(): void;
}

/**
 * Connects to the replicas of one service. Each call gets its deadline and its principal; repeatable methods are
 * retried, and so is each call that was never sent.
 * @param given.address host:port; several replicas comma-separated
 * @param given.carriedBy streams are for a process that makes many calls
 */
export function openConnection({
  address,
  carriedBy = 'streams',
  ...target
}: Target & { address: string; carriedBy?: 'streams' | 'unary calls' }): Connection {
  const addresses = address.split(',');
  const transport = (carriedBy === 'streams' ? openReplicas : openUnary)(addresses, makeDialer(target));
  let streams = carriedBy === 'streams' ? transport : undefined;
  /** Bidirectional calls go by streams in any case. */
  const transportOf = ({ requestStream }: CallableMethod): Transport =>
    requestStream ? (streams ??= openReplicas(addresses, makeDialer(target))) : transport;
  /** The earlier one of the method's and the caller's; one for all attempts and all replies. */
  const deadlineOf = ({ deadlineMs }: MethodOptions, { deadline }: CallOptions): number =>
    Math.min(Date.now() + deadlineMs, deadline ?? Number.POSITIVE_INFINITY);

  const callForReply = (...call: Parameters<typeof attemptCall>): Promise<object> =>
    inSpan(
      'client',
      call[0].path.slice(1),
      () => rpcAttributes(call[0].path),
      () => attemptCall(...call),
    );

  async function attemptCall(method: CallableMethod, request: object, options: CallOptions): Promise<object> {
    const methodOptions = methodOptionsOf(method.path);
    const deadline = deadlineOf(methodOptions, options);
    for (let attempt = 0; ; attempt++) {
      try {
        const reply = await transport.call(outgoing(method, methodOptions, request, options, deadline));
        return method.responseDeserialize(reply as Buffer);
      } catch (error) {
        await delayBeforeRetry(error, attempt, methodOptions, deadline);
      }
    }
  }

  /** A call is not retried once a reply has arrived or a request was read: only its caller knows where to go on. */
  async function* callForReplies(
    method: CallableMethod,
    request: object,
    options: CallOptions,
  ): AsyncGenerator<object> {
    const methodOptions = methodOptionsOf(method.path);
    const deadline = deadlineOf(methodOptions, options);
    let hasBegun = false;
    const requests = serializedRequests(request as AsyncIterable<object>, method, () => (hasBegun = true));
    for (let attempt = 0; ; attempt++) {
      try {
        const call = outgoing(method, methodOptions, request, options, deadline);
        const replies = transportOf(method).replies(method.requestStream ? { ...call, requests } : call);
        for await (const reply of replies) {
          hasBegun = true;
          yield method.responseDeserialize(reply as Buffer);
        }
        return;
      } catch (error) {
        if (hasBegun) throw error;
        await delayBeforeRetry(error, attempt, methodOptions, deadline);
      }
    }
  }

  return {
    call: ((method, request, options) =>
      method.responseStream
        ? callForReplies(method, request, options)
        : callForReply(method, request, options)) as AnyCall,
    ...(transport.load && { load: transport.load }),
    close() {
      transport.close();
      if (streams !== transport) streams?.close();
    },
  };
}

/** No generator: its `return()` would wait for a pending `next()`, where this one stops the source at once. */
const serializedRequests = (
  requests: AsyncIterable<object>,
  { requestSerialize }: CallableMethod,
  onRead: () => void,
): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]() {
    const source = requests[Symbol.asyncIterator]();
    return {
      async next() {
        onRead();
        const { done, value } = await source.next();
        return done ? { done, value: undefined } : { done: false, value: requestSerialize(value) };
      },
      async return() {
        // code of the caller does not run within ours
        await Promise.resolve();
        await source.return?.();
        return { done: true, value: undefined };
      },
    };
  },
});

const NOTHING = Buffer.alloc(0);

const outgoing = (
  method: CallableMethod,
  { repeatable }: MethodOptions,
  request: object,
  { principal, requestId, signal, maxReplyBytes = 0 }: CallOptions,
  deadline: number,
): OutgoingCall => ({
  method: method.path,
  request: method.requestStream ? NOTHING : method.requestSerialize(request),
  organizationId: principal.organizationId,
  principal: bytesOf(principal),
  requestId,
  traceparent: traceparent(),
  maxReplyBytes,
  signal,
  deadline,
  repeatable,
});

/** @throws the error, unless the call may be made once more */
async function delayBeforeRetry(
  error: unknown,
  attempt: number,
  { repeatable }: MethodOptions,
  deadline: number,
): Promise<void> {
  const isUnavailable = error instanceof ServiceError && error.reason === 'UNAVAILABLE';
  const mayRepeat = repeatable || (isUnavailable && error.cause instanceof NeverSentError);
  const retryDelayMs = mayRepeat ? RETRY_DELAYS_MS[attempt] : undefined;
  if (!isUnavailable || retryDelayMs === undefined || Date.now() + retryDelayMs >= deadline) throw error;
  await delay(retryDelayMs);
}

/** Typed client over a connection: `client.reserve(request, options)`. */
export function clientOf<D extends ServiceDefinition>(definition: D, call: AnyCall): ServiceClient<D> {
  const methods = Object.entries(definition).map(([name, method]) => [
    name,
    (request: object, options: CallOptions) => call(method, request, options),
  ]);
  return Object.fromEntries(methods) as ServiceClient<D>;
}
