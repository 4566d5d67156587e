import { parentPort } from 'node:worker_threads';
import { ServiceError, type KnownReason, type Violation } from 'platform/core/errors.ts';
import { strictJson } from 'platform/json/strict-json.ts';

/** What strictJson is to read. */
export interface Text {
  bytes: Uint8Array<ArrayBuffer>;
  schemas: readonly string[];
}
/** What strictJson returned, or the ServiceError that it threw. */
export type Answer =
  { json: Uint8Array<ArrayBuffer> } | { fault: { reason: KnownReason; message: string; details: Violation[] } };

parentPort!.on('message', ({ bytes: { buffer, byteOffset, length }, schemas }: Text) => {
  const answer = answerTo(Buffer.from(buffer, byteOffset, length), schemas);
  parentPort!.postMessage(answer, 'json' in answer ? [answer.json.buffer] : []);
});

function answerTo(bytes: Buffer, schemas: readonly string[]): Answer {
  try {
    return { json: strictJson(bytes, schemas) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { reason, message, details } = error;
    return { fault: { reason, message, details } };
  }
}
