import type { PlatformStore } from './store/store.ts';
import type { Log } from './log.ts';

/** Work that a service does by itself. One replica at a time holds its lease; what it writes is a compare-and-set. */
export interface Job {
  name: string;
  /** One sentence, shown by `npm run admin -- job list`. */
  description: string;
  intervalMs: number;
  /** One round; resolves to the number of things done. `signal` aborts when the process drains. */
  run(signal: AbortSignal): Promise<number>;
}

export interface JobRunner {
  /** One round now. `ran` is false when another replica holds the lease. */
  runNow(name: string): Promise<{ ran: boolean; count: number }>;
  /** Starts the next round of a job soon, for example when an outbox entry was written. Cheap; coalesced. */
  poke(name: string): void;
  list(): readonly Job[];
  /** Stops the rounds, waits for the running ones, gives the leases back. */
  stop(): Promise<void>;
}

export interface JobRunnerOptions {
  platformStore: PlatformStore;
  /** Unique per process. */
  owner: string;
  leaseMs: number;
  log: Log;
}
