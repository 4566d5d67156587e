import type { Interceptor } from './handle.ts';

/** Counts the calls that handlers work on: some go on after their connection is lost. */
export interface OpenWork {
  count: Interceptor;
  /** Resolves when no handler works. */
  ended(): Promise<void>;
}

export function makeOpenWork(): OpenWork {
  const waiting: (() => void)[] = [];
  let open = 0;
  return {
    async count(_call, next) {
      open++;
      try {
        return await next();
      } finally {
        open--;
        if (open === 0) for (const resolve of waiting.splice(0)) resolve();
      }
    },
    ended: () => new Promise((resolve) => (open === 0 ? resolve() : waiting.push(resolve))),
  };
}
