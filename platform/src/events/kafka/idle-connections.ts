import { createRequire } from 'node:module';

/** The requests of one connection, in kafkajs. */
interface RequestQueue {
  /** Those that wait until others are answered, or until the broker takes requests again. */
  pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
}

const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as { prototype: RequestQueue };
const { scheduleCheckPendingRequests: checkSoon } = prototype;

function checkIfSomeWait(this: RequestQueue): void {
  if (this.pending.length > 0) checkSoon.call(this);
}

/**
 * Lets idle connections sleep. Once it has an answer, each connection of kafkajs 2.2.4, its last release, looks every
 * millisecond whether requests wait, for ever (tulios/kafkajs#1704), and Node warns of the negative delay. A request
 * that has to wait asks for a look by itself.
 */
export function letIdleConnectionsSleep(): void {
  prototype.scheduleCheckPendingRequests = checkIfSomeWait;
}
