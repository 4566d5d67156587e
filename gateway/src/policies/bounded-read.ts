import { methodOptionsOf } from 'platform/rpc/method-options.ts';
import type { CallableMethod, UnaryCall } from 'platform/rpc/client.ts';
import type { CallOptions } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { byteLength } from '../contract/json-text.ts';
import type { TranscodedResponse } from '../contract/transcode-response.ts';
import type { Permit } from '../http/byte-budget.ts';
import { tokenKey } from '../limits/principal-limits.ts';
import { EXPECTED_REPLY_BYTES, overBudget } from './admit.ts';
import { makeTurns, type Turns } from './read-turns.ts';

const MAX_REMEMBERED = 10_000;
/** A list may grow between two calls. */
const HEADROOM = 1.25;
const ATTEMPTS = 3;

const isTooLarge = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && error.reason === 'REPLY_TOO_LARGE' && Number.isSafeInteger(error.facts.bytes);

type Read = (
  call: UnaryCall,
  method: CallableMethod,
  message: object,
  options: CallOptions,
  permit: Permit,
) => Promise<TranscodedResponse>;

/** What is known of the replies to one token's calls of one method. */
interface Known {
  expectedBytes: number;
  turns: Turns;
}

/**
 * Makes calls that only read, whose replies are no larger than their permit: the service refuses to send a
 * larger one and says how large it is, and the call is repeated if there is room for it. The size is remembered for the
 * next call of the same method with the same token, so that a client that asks for too much is soon refused before its
 * call. To find that a reply is too large may cost the service as much as the reply, so as long as it is uncertain how
 * large they are, these calls are made one after the other.
 * @throws ServiceError UNAVAILABLE if there is no room
 */
export function makeBoundedRead(): Read {
  /** The longest unused first. */
  const known = new Map<string, Known>();

  function knownOf(key: string): Known {
    const found = known.get(key) ?? { expectedBytes: EXPECTED_REPLY_BYTES, turns: makeTurns() };
    known.delete(key);
    known.set(key, found);
    if (known.size > MAX_REMEMBERED) known.delete(known.keys().next().value as string);
    return found;
  }

  return async (call, method, message, options, permit) => {
    const ofCalls = knownOf(`${tokenKey(options.principal)} ${method.path}`);
    // also the time until its turn counts
    const deadline = Date.now() + methodOptionsOf(method.path).deadlineMs;
    const turn = await ofCalls.turns.take();
    let isRight = false;
    try {
      let maxReplyBytes = ofCalls.expectedBytes;
      for (let attempt = 1; ; attempt++) {
        if (!permit.tryResize(maxReplyBytes)) throw overBudget(`no room for a reply of ${maxReplyBytes} bytes`);
        try {
          const response = (await call(method, message, { ...options, deadline, maxReplyBytes })) as TranscodedResponse;
          // one small reply among large ones lowers it slowly
          const half = Math.floor(ofCalls.expectedBytes / 2);
          ofCalls.expectedBytes = Math.max(byteLength(response.body) * HEADROOM, half, EXPECTED_REPLY_BYTES);
          isRight = attempt === 1;
          return response;
        } catch (error) {
          if (!isTooLarge(error)) {
            isRight = attempt === 1 && options.signal?.aborted !== true;
            throw error;
          }
          turn.wasWrong();
          maxReplyBytes = Math.ceil(Number(error.facts.bytes) * HEADROOM);
          ofCalls.expectedBytes = Math.max(ofCalls.expectedBytes, maxReplyBytes);
          if (attempt === ATTEMPTS) throw overBudget('the reply grew with every attempt');
        }
      }
    } finally {
      turn.end(isRight);
    }
  };
}
