const TICK_MS = 50;

/**
 * Starts to measure how long this process is awake: of a stall of the machine a tenth of a second counts, so that a
 * time-out that works is never measured as one that does not.
 * @returns ends the measurement, and returns milliseconds
 */
export function startAwakeTime(): () => number {
  let awakeMs = 0;
  let last = performance.now();
  const note = (): void => {
    const now = performance.now();
    awakeMs += Math.min(now - last, 2 * TICK_MS);
    last = now;
  };
  const timer = setInterval(note, TICK_MS);
  return () => {
    clearInterval(timer);
    note();
    return awakeMs;
  };
}

/** The outcome of the work, which must end within this time of being awake. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const awakeMs = startAwakeTime();
  try {
    return await work;
  } finally {
    expect(awakeMs()).toBeLessThan(ms);
  }
}
