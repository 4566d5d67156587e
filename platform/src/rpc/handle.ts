import type { Log } from '../core/log.ts';
import type { Principal } from '../core/principal.ts';
import type { MethodOptions } from './method-options.ts';

/** One call as the interceptors and the handler get it, independent of the transport. */
export interface Call {
  /** "/memory.v1.MemoryService/ListMemoryTypes" */
  readonly path: string;
  readonly options: MethodOptions;
  readonly request: unknown;
  /** Names the calling process and the principal, signed by the calling process (identity.ts). */
  readonly assertion: string;
  readonly requestId: string;
  /** Aborted when the caller cancels, the deadline passes or the caller is lost. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly deadline: number;
  /** The largest serialized reply that the caller takes. */
  readonly maxReplyBytes: number;
  readonly log: Log;
  /** `caller` and `principal` are empty, and so rejected by every method, until `identifyCaller` sets them. */
  caller: string;
  principal: Principal;
}

/** Runs around the rest of the call (`next`); what it throws becomes the outcome of the call. */
export type Interceptor = (call: Call, next: () => Promise<unknown>) => Promise<unknown>;
export type Handle = (call: Call) => Promise<unknown>;

/** Wraps the handler in the interceptors; the first one is the outermost. */
export const handleThrough = (interceptors: readonly Interceptor[], handler: Handle): Handle =>
  interceptors.reduceRight<Handle>((inner, interceptor) => (call) => interceptor(call, () => inner(call)), handler);
