import type { Log } from '../core/log.ts';
import type { Principal } from '../core/principal.ts';
import type { MethodOptions } from './method-options.ts';

/** One call on its way through the interceptors to its handler, whatever transport carried it. */
export interface Call {
  /** "/memory.v1.MemoryService/ListMemoryTypes" */
  readonly path: string;
  readonly options: MethodOptions;
  readonly request: unknown;
  /** Who calls, and for whom, signed by the calling process. */
  readonly assertion: string;
  readonly requestId: string;
  /** Aborted when the caller cancels, the deadline passes or the caller is lost. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly deadline: number;
  readonly log: Log;
  /** Set by the interceptor `caller`; before that nobody, whom every method refuses. */
  caller: string;
  principal: Principal;
}

/** Runs before and after what comes next; what it throws is the outcome of the call. */
export type Interceptor = (call: Call, next: () => Promise<unknown>) => Promise<unknown>;
export type Handle = (call: Call) => Promise<unknown>;

/** The handler behind the interceptors, the first of them outermost. */
export const handleThrough = (interceptors: readonly Interceptor[], handler: Handle): Handle =>
  interceptors.reduceRight<Handle>((inner, interceptor) => (call) => interceptor(call, () => inner(call)), handler);
