import type { CallableMethod, UnaryCall } from 'platform/rpc/client.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { TranscodedResponse } from '../contract/transcode-response.ts';
import type { Permit } from '../http/byte-budget.ts';
import { EXPECTED_REPLY_BYTES, overBudget } from './admit.ts';

const MAX_REMEMBERED = 10_000;
/** A list may grow between two calls. */
const HEADROOM = 1.25;
const ATTEMPTS = 3;

/** UTF-8 needs at most three bytes for a UTF-16 unit, so a short text need not be counted. */
const bytesOf = (text: string): number =>
  text.length * 3 <= EXPECTED_REPLY_BYTES ? text.length : Buffer.byteLength(text);

type Read = (
  call: UnaryCall,
  method: CallableMethod,
  message: object,
  options: CallOptions,
  permit: Permit,
) => Promise<TranscodedResponse>;

/**
 * Makes calls that only read, whose replies are no larger than their permit: the service refuses to send a
 * larger one and says how large it is, and the call is repeated if there is room for it. The size is remembered for the
 * next call of the same method with the same token, so that a client that asks for too much is soon refused before its
 * call.
 * @throws ServiceError UNAVAILABLE if there is no room
 */
export function makeBoundedRead(): Read {
  const expected = new Map<string, number>();

  function remember(key: string, bytes: number): void {
    const before = expected.get(key);
    if (before === undefined && bytes <= EXPECTED_REPLY_BYTES) return;
    expected.delete(key);
    // one small reply among large ones lowers it slowly
    const next = Math.max(Math.ceil(bytes * HEADROOM), Math.floor((before ?? 0) / 2));
    if (next > EXPECTED_REPLY_BYTES) expected.set(key, next);
    if (expected.size > MAX_REMEMBERED) expected.delete(expected.keys().next().value as string);
  }

  return async (call, method, message, options, permit) => {
    const key = `${options.principal.subject} ${method.path}`;
    let maxReplyBytes = expected.get(key) ?? EXPECTED_REPLY_BYTES;
    for (let attempt = 1; ; attempt++) {
      if (!permit.tryResize(maxReplyBytes)) throw overBudget(`no room for a reply of ${maxReplyBytes} bytes`);
      try {
        const response = (await call(method, message, { ...options, maxReplyBytes })) as TranscodedResponse;
        remember(key, bytesOf(response.body));
        return response;
      } catch (error) {
        if (!(error instanceof ServiceError && error.reason === 'REPLY_TOO_LARGE')) throw error;
        remember(key, Number(error.facts.bytes));
        if (attempt === ATTEMPTS) throw overBudget('the reply grew with every attempt');
        maxReplyBytes = Math.ceil(Number(error.facts.bytes) * HEADROOM);
      }
    }
  };
}
