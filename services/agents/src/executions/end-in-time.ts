/** How a run ends that whatever evaluates it does not end. */
export type Overdue = 'cancelled' | 'timed_out';

/** What evaluates a run that was cancelled may take this long to tell what the run has used. */
const TELLING_MS = 1_000;

/**
 * Ends a run also when whatever evaluates it never does: a second after `signal`, or `limitMs` after its start. What
 * the evaluation gives later is dropped.
 * @param evaluate calls `onStart` when the run no longer waits; the signal that it gets aborts with `signal`, and when
 * the run has ended without it
 */
export async function endInTime<T>(
  { signal, limitMs }: { signal: AbortSignal; limitMs: number },
  evaluate: (signal: AbortSignal, onStart: () => void) => Promise<T>,
): Promise<T | Overdue> {
  const evaluation = new AbortController();
  const { promise: overdue, resolve } = Promise.withResolvers<Overdue>();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  function endAfter(ms: number, how: Overdue): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      resolve(how);
      evaluation.abort();
    }, ms).unref();
  }
  const onStart = (): void => {
    if (!isOver && !signal.aborted) endAfter(limitMs, 'timed_out');
  };
  const cancel = (): void => {
    endAfter(TELLING_MS, 'cancelled');
    evaluation.abort(signal.reason);
  };

  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  try {
    return await Promise.race([evaluate(evaluation.signal, onStart), overdue]);
  } finally {
    isOver = true;
    clearTimeout(timer);
    signal.removeEventListener('abort', cancel);
  }
}
