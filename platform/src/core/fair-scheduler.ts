import { fairQueue } from './fair-queue.ts';

/** Work runs without a pause for at most this long, plus the length of the last piece. */
const SLICE_MS = 5;

export type FairScheduler = <T>(organizationId: string, work: () => T) => Promise<T>;

/**
 * Runs synchronous work that may take long, such as compiling a schema. Organizations are served round-robin, and after
 * every slice of 5 ms the event loop handles what arrived meanwhile.
 */
export function fairScheduler(nowMs: () => number = () => performance.now()): FairScheduler {
  const waiting = fairQueue<() => void>();

  function runSlice(): void {
    const until = nowMs() + SLICE_MS;
    for (let next; nowMs() < until && (next = waiting.shift());) next();
    if (waiting.length > 0) setImmediate(runSlice);
  }

  return (organizationId, work) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(runSlice);
      waiting.push(organizationId, () => void Promise.try(work).then(resolve, reject));
    });
}
