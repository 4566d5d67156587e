import { ServiceError } from 'platform/core/errors.ts';
import { runQueue } from '../run-queue.ts';

/** Bounds how many runs wait on the network at once; organizations take turns (run-queue.ts). */
export interface Turns {
  /**
   * Resolves when the run may start, to what ends its turn; to undefined when `signal` aborts before.
   * @throws ServiceError QUEUE_FULL
   */
  take(organizationId: string, signal: AbortSignal): Promise<(() => void) | undefined>;
  /** Runs that wait. */
  readonly waiting: number;
}

interface WaitingRun {
  start(): void;
  reject(error: ServiceError): void;
}

/**
 * @param options.size runs at once; twice as many, if each further one is the only run of its organization
 * @param options.limit runs that may wait
 */
export function makeTurns({ size, limit }: { size: number; limit: number }): Turns {
  const queue = runQueue<WaitingRun>({ size, maxSize: 2 * size, limit });

  function begin(organizationId: string): () => void {
    const startedMs = performance.now();
    return () => {
      queue.end(organizationId, performance.now() - startedMs);
      for (let next = queue.next(); next; next = queue.next()) next.start();
    };
  }

  return {
    get waiting() {
      return queue.length;
    },
    async take(organizationId, signal) {
      if (signal.aborted) return undefined;
      if (queue.admit(organizationId, { spare: true })) return begin(organizationId);
      const { promise, resolve, reject } = Promise.withResolvers<(() => void) | undefined>();
      const leave = (): void => {
        queue.remove(organizationId, run);
        resolve(undefined);
      };
      const run: WaitingRun = {
        start() {
          signal.removeEventListener('abort', leave);
          resolve(begin(organizationId));
        },
        reject,
      };
      signal.addEventListener('abort', leave, { once: true });
      queue
        .push(organizationId, run)
        ?.reject(new ServiceError('QUEUE_FULL', undefined, { headers: { 'Retry-After': '1' } }));
      return promise;
    },
  };
}
