import { fairQueue } from 'platform/core/fair-queue.ts';

/** How long work may go on before the event loop turns to what came in meanwhile. */
const SLICE_MS = 5;

export type FairScheduler = <T>(organizationId: string, work: () => T) => Promise<T>;

/**
 * Runs synchronous work that may take long. Organizations take turns, and the event loop turns at least once between two
 * long pieces.
 */
export function fairScheduler(nowMs: () => number = () => performance.now()): FairScheduler {
  const waiting = fairQueue<() => void>();

  function drain(): void {
    const until = nowMs() + SLICE_MS;
    do waiting.shift()!();
    while (waiting.length > 0 && nowMs() < until);
    if (waiting.length > 0) setImmediate(drain);
  }

  return (organizationId, work) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(drain);
      waiting.push(organizationId, () => void Promise.try(work).then(resolve, reject));
    });
}
