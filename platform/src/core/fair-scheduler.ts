import { fairQueue } from './fair-queue.ts';

/** Work runs without a pause for at most this long, plus the length of the last piece. */
const SLICE_MS = 5;
/** The process itself may have stood still, so a pause has a limit. */
const MAX_PAUSE_MS = 500;

export type FairScheduler = <T>(organizationId: string, work: () => T) => Promise<T>;

/** What it needs of time. `wakeAfter` calls `wake` once, after that many milliseconds. */
interface Time {
  nowMs(): number;
  wakeAfter(ms: number, wake: () => void): void;
}
const realTime: Time = { nowMs: () => performance.now(), wakeAfter: (ms, wake) => void setTimeout(wake, ms) };

/**
 * Runs synchronous work that may take long, such as compiling a schema. Organizations are served round-robin, and after
 * every slice of 5 ms the event loop handles what arrived meanwhile. An organization whose piece took longer than that
 * waits for as long as it took, whether others wait here or on the network: it never has more than half of the thread.
 */
export function fairScheduler({ nowMs, wakeAfter }: Time = realTime): FairScheduler {
  const waiting = fairQueue<() => void>();
  const pausedUntil = new Map<string, number>();
  let willRun = false;

  const pauseEnd = (organizationId: string): number => pausedUntil.get(organizationId) ?? 0;

  function runNext(): boolean {
    const startMs = nowMs();
    const next = waiting.shift((organizationId) => pauseEnd(organizationId) <= startMs);
    if (!next) return false;
    next.item();
    pauseAfter(next.organizationId, nowMs() - startMs);
    return true;
  }

  function pauseAfter(organizationId: string, tookMs: number): void {
    for (const [id, untilMs] of pausedUntil) if (untilMs <= nowMs()) pausedUntil.delete(id);
    if (tookMs > SLICE_MS) pausedUntil.set(organizationId, nowMs() + Math.min(tookMs, MAX_PAUSE_MS));
  }

  function runSlice(): void {
    willRun = false;
    const until = nowMs() + SLICE_MS;
    while (nowMs() < until) {
      if (runNext()) continue;
      if (!waiting.isEmpty) wakeAfter(Math.max(0, Math.min(...waiting.organizationIds().map(pauseEnd)) - nowMs()), run);
      return;
    }
    if (!waiting.isEmpty) run();
  }

  function run(): void {
    if (willRun) return;
    willRun = true;
    setImmediate(runSlice);
  }

  return (organizationId, work) =>
    new Promise((resolve, reject) => {
      waiting.push(organizationId, () => void Promise.try(work).then(resolve, reject));
      run();
    });
}
