import type { Log } from '../core/log.ts';
import type { Principal } from '../core/principal.ts';
import type { Peer } from './identity.ts';
import type { MethodOptions } from './method-options.ts';

/** One call as the interceptors and the handler get it, independent of the transport. */
export interface Call {
  /** "/memory.v1.MemoryService/ListMemoryTypes" */
  readonly path: string;
  readonly options: MethodOptions;
  /** Undefined for a bidirectional method. */
  readonly request: unknown;
  readonly requests?: AsyncIterable<unknown> | undefined;
  /** The other end of the connection by which the call came. */
  readonly peer: Peer;
  readonly requestId: string;
  /** Where in a trace the caller is; empty: nowhere. */
  readonly traceparent: string;
  /** Aborted when the caller cancels, the deadline passes or the caller is lost. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly deadline: number;
  /** The largest serialized reply that the caller takes. */
  readonly maxReplyBytes: number;
  readonly log: Log;
  /** For whom the peer says that it calls; `identifyCaller` checks that it may say so. */
  readonly principal: Principal;
  /** Of a method with a stream of replies: sends one serialized reply. Resolves when the next one may be sent. */
  readonly send?: ((reply: Uint8Array) => Promise<void>) | undefined;
}

/**
 * Runs around the rest of the call (`next`), of one with a stream of replies until all are sent; what it throws
 * becomes the outcome of the call.
 */
export type Interceptor = (call: Call, next: () => Promise<unknown>) => Promise<unknown>;
export type Handle = (call: Call) => Promise<unknown>;

/** Wraps the handler in the interceptors; the first one is the outermost. */
export const handleThrough = (interceptors: readonly Interceptor[], handler: Handle): Handle =>
  interceptors.reduceRight<Handle>((inner, interceptor) => (call) => interceptor(call, () => inner(call)), handler);
