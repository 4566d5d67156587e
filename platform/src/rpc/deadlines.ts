import type { OpenItems } from '../core/open-items.ts';

/** How precisely deadlines are kept. */
const SWEEP_MS = 50;

/**
 * Keeps the deadlines of the calls of a stream by one timer, because a timer for each would cost as much as the call.
 * @param calls those that are open
 * @param deadlineOf milliseconds since the epoch
 * @param onPassed called for each of them whose deadline has passed, again and again while it stays open
 * @returns a function to call when a call has been added; the timer ends when no call is left
 */
export function keepDeadlines<C>(
  calls: OpenItems<C>,
  deadlineOf: (call: C) => number,
  onPassed: (id: number, call: C) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  function sweep(): void {
    const now = Date.now();
    calls.forEach((call, id) => {
      if (deadlineOf(call) <= now) onPassed(id, call);
    });
    if (calls.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }
  return () => void (timer ??= setInterval(sweep, SWEEP_MS));
}
