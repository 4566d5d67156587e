import { parentPort } from 'node:worker_threads';
import { ServiceError, type KnownReason, type Violation } from 'platform/core/errors.ts';
import { strictJson } from 'platform/json/strict-json.ts';

/** What strictJson returned, or the ServiceError that it threw. */
export type Answer =
  { json: Uint8Array<ArrayBuffer> } | { fault: { reason: KnownReason; message: string; details: Violation[] } };

parentPort!.on('message', ({ buffer, byteOffset, length }: Uint8Array<ArrayBuffer>) => {
  const answer = answerTo(Buffer.from(buffer, byteOffset, length));
  parentPort!.postMessage(answer, 'json' in answer ? [answer.json.buffer] : []);
});

function answerTo(bytes: Buffer): Answer {
  try {
    return { json: strictJson(bytes) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { reason, message, details } = error;
    return { fault: { reason, message, details } };
  }
}
