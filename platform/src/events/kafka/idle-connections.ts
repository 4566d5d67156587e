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
 * Lets idle connections sleep. After its first answer, kafkajs 2.2.4, its last release, checks each connection every
 * millisecond for requests that wait (tulios/kafkajs#1704), and Node warns of the negative delay. We schedule the
 * check only while a request waits; `push` schedules it, too.
 */
export function letIdleConnectionsSleep(): void {
  prototype.scheduleCheckPendingRequests = checkIfSomeWait;
}
