/** Counts work that is under way, such as the calls of handlers: some go on after their connection is lost. */
export interface OpenWork {
  during<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when nothing is under way. */
  ended(): Promise<void>;
}

export function makeOpenWork(): OpenWork {
  const waiting: (() => void)[] = [];
  let open = 0;
  return {
    async during(work) {
      open++;
      try {
        return await work();
      } finally {
        open--;
        if (open === 0) for (const resolve of waiting.splice(0)) resolve();
      }
    },
    ended: () => new Promise((resolve) => (open === 0 ? resolve() : waiting.push(resolve))),
  };
}
