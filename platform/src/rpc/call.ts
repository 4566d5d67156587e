import { organizationOf, type Principal } from '../core/principal.ts';

/** What a handler knows of its call besides the request. */
export interface CallContext {
  principal: Principal;
  /** Name in the certificate of the calling process: "gateway", "agents", "operator:ada". */
  caller: string;
  requestId: string;
  /** Aborted when the caller cancels, the deadline passes or the caller is lost (`isCallerLost`). */
  signal: AbortSignal;
  /** Milliseconds since the epoch. */
  deadline: number;
  /**
   * The largest serialized reply that the caller takes, if it has a limit; a handler that reads much passes it on to
   * the store.
   */
  maxReplyBytes?: number | undefined;
}

/** Abort reason of a call whose caller died or lost the connection, as opposed to a caller that cancelled. */
export const CALLER_LOST = 'the calling process is gone';
export const isCallerLost = (signal: AbortSignal): boolean => signal.reason === CALLER_LOST;

/** The organization of the call: first argument of every store method. */
export const organizationOfCall = (context: CallContext): string => organizationOf(context.principal);

/* eslint-disable @typescript-eslint/no-explicit-any -- ts-proto types every method of a service definition like this */
type Method = {
  path: string;
  requestStream: boolean;
  responseStream: boolean;
  requestSerialize: (value: any) => Buffer;
  requestDeserialize: (bytes: Buffer) => any;
  responseSerialize: (value: any) => Buffer;
  responseDeserialize: (bytes: Buffer) => any;
};
/* eslint-enable @typescript-eslint/no-explicit-any */
/** A ts-proto service definition (`outputServices=grpc-js`), for example `MemoryServiceService`. */
export type ServiceDefinition = Record<string, Method>;
export type RequestOf<M extends Method> = ReturnType<M['requestDeserialize']>;
export type ResponseOf<M extends Method> = ReturnType<M['responseDeserialize']>;

/** The request, or the requests of a bidirectional method. */
export type RequestsOf<M extends Method> = M['requestStream'] extends true ? AsyncIterable<RequestOf<M>> : RequestOf<M>;
/** A promise of the reply, or the replies of a server-streaming or bidirectional method (`async function*`). */
export type AnswerOf<M extends Method> = M['responseStream'] extends true
  ? AsyncIterable<ResponseOf<M>>
  : Promise<ResponseOf<M>>;

/** One function per RPC; the compiler requires all of them. */
export type Handlers<D extends ServiceDefinition, Deps> = {
  [K in keyof D]: (deps: Deps, request: RequestsOf<D[K]>, context: CallContext) => AnswerOf<D[K]>;
};

/** Handlers that `bind` has given their dependencies. */
export type BoundHandlers<D extends ServiceDefinition> = {
  [K in keyof D]: (request: RequestsOf<D[K]>, context: CallContext) => AnswerOf<D[K]>;
};

/** A service definition with its bound handlers, by name. */
export interface BoundService {
  definition: ServiceDefinition;
  handlers: Readonly<
    Record<string, (request: never, context: CallContext) => Promise<unknown> | AsyncIterable<unknown>>
  >;
}

/** Binds the handlers of a service to their dependencies. */
export function bind<D extends ServiceDefinition, Deps>(
  definition: D,
  deps: Deps,
  handlers: Handlers<D, Deps>,
): BoundService {
  const bound = Object.entries(handlers).map(([name, handler]) => [
    name,
    (request: unknown, context: CallContext) => handler(deps, request, context),
  ]);
  return { definition, handlers: Object.fromEntries(bound) as BoundService['handlers'] };
}

/** Metadata keys of a call: `maxReplyBytes`, the bytes of the Principal message, the id of the request, its trace. */
export const MAX_REPLY_BYTES = 'max-reply-bytes';
export const PRINCIPAL = 'principal-bin';
export const REQUEST_ID = 'x-request-id';
export const TRACEPARENT = 'traceparent';

export interface CallOptions {
  /** Who the call acts for. The service checks that this process may call for it. */
  principal: Principal;
  requestId: string;
  /** Milliseconds since the epoch. The method's deadline_ms from now applies too: the earlier of both counts. */
  deadline?: number;
  signal?: AbortSignal;
  /** For calls that only read: instead of a larger reply, the service answers REPLY_TOO_LARGE with the fact `bytes`. */
  maxReplyBytes?: number;
}
/**
 * Typed client of a service, made by `clientOf` in client.ts. A call rejects with ServiceError. One with a stream of
 * replies begins when the first reply is asked for, and is cancelled when the loop over its replies is left. The
 * requests of a bidirectional one are read as the handler consumes them; if reading them throws, the call is cancelled
 * and throws the same.
 */
export type ServiceClient<D extends ServiceDefinition> = {
  [K in keyof D]: (request: RequestsOf<D[K]>, options: CallOptions) => AnswerOf<D[K]>;
};
