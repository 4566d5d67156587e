/** Work that goes on after its request was answered, until the process stops. */
export interface Background {
  /** Starts the work; its signal aborts when the process stops. */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Aborts all work and waits until it has ended. */
  stop(): Promise<void>;
}

export function openBackground(): Background {
  const stopping = new AbortController();
  const running = new Set<Promise<unknown>>();
  return {
    run(work) {
      const result = work(stopping.signal);
      const ended: Promise<unknown> = result.catch(() => undefined).then(() => running.delete(ended));
      running.add(ended);
      return result;
    },
    async stop() {
      stopping.abort(new Error('the process stops'));
      await Promise.all(running);
    },
  };
}
