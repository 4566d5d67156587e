import type { CallFrame } from 'proto/platform/v1/calls.ts';

/** One call that this process makes. */
export interface OutgoingCall extends Omit<CallFrame, 'id' | 'timeoutMs' | 'windowBytes' | 'requestsFollow'> {
  /** Of a bidirectional call: its requests, each serialized. They are not read before the call is sent. */
  requests?: AsyncIterable<Uint8Array> | undefined;
  /** Calls that wait are sent in turns between organizations. */
  organizationId: string;
  /** Milliseconds since the epoch. */
  deadline: number;
  signal?: AbortSignal;
  /** A call whose outcome is unknown may be repeated. */
  repeatable: boolean;
}

/** The call has left this process by no stream: it can be sent by another one. */
export class NeverSentError extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    super(message ?? (options?.cause as Error | undefined)?.message, options);
  }
}

/** @param windowBytes of a call with a stream of replies; 0 for a unary one */
export const frameOf = (
  id: number,
  { deadline, method, request, principal, requestId, maxReplyBytes, traceparent, requests }: OutgoingCall,
  windowBytes: number,
  now: number,
): CallFrame => ({
  id,
  method,
  request,
  principal,
  requestId,
  maxReplyBytes: uint32(maxReplyBytes),
  traceparent,
  timeoutMs: Math.max(1, uint32(deadline - now)),
  windowBytes,
  requestsFollow: requests !== undefined,
});

/** A number that could not be serialized would end the stream, with all its calls. */
const uint32 = (value: number): number => Math.min(Math.max(0, Math.floor(value)), 2 ** 32 - 1);
