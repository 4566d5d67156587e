import { strict as assert } from 'node:assert';
import { ServiceError } from '../core/errors.ts';
import { acquireLease, keepLease, releaseLease, renewLease, type Lease } from './lease.ts';
import type { Log } from '../core/log.ts';
import type { PlatformStore } from '../store/store.ts';

/** Work that a service does by itself. One replica at a time holds its lease; what it writes is a compare-and-set. */
export interface Job {
  name: string;
  /** One sentence, shown by `npm run admin -- job list`. */
  description: string;
  /** Without one it runs only when it is asked to. */
  intervalMs?: number;
  /** For what a process holds in its own memory: every replica runs its rounds, without a lease. */
  everyReplica?: true;
  /** One round; resolves to the number of things done. `signal` aborts when the process drains or the lease is lost. */
  run(signal: AbortSignal): Promise<number>;
}

export interface JobRunner {
  /** One round now. `ran` is false when another replica holds the lease, or when it was lost before the round's end; `count` is what was done until then. */
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

const BACK_OFF_MAX_MS = 30_000;

/**
 * Runs each job at its interval (one that has none: when asked), one round at a time, under the lease `job:<name>` unless it runs on every replica. A round
 * that fails is logged and tried again, later and later up to 30 s. The signal of a round aborts also when its lease is lost.
 */
export function startJobs(jobs: readonly Job[], options: JobRunnerOptions): JobRunner {
  const stopping = new AbortController();
  const loops = new Map(jobs.map((job) => [job.name, startLoop(job, options, stopping.signal)]));
  return {
    async runNow(name) {
      const loop = loops.get(name);
      if (loop === undefined)
        throw new ServiceError('NOT_FOUND', `There is no job ${name}; there are: ${[...loops.keys()].join(', ')}`);
      return loop.next();
    },
    poke(name) {
      const loop = loops.get(name);
      assert(loop, `no job ${name}`);
      loop.poke();
    },
    list: () => jobs,
    async stop() {
      stopping.abort(new Error('the process drains'));
      await Promise.all([...loops.values()].map((loop) => loop.end()));
    },
  };
}

type Round = Awaited<ReturnType<JobRunner['runNow']>>;

function startLoop(job: Job, { platformStore, owner, leaseMs, log }: JobRunnerOptions, stopping: AbortSignal) {
  let lease: Lease | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let failures = 0;
  let running = false;
  /** A poke that no round has begun for yet. */
  let poked = false;
  let timer: NodeJS.Timeout | undefined;
  schedule(0);

  async function held(): Promise<Lease | undefined> {
    if (lease === undefined) return acquireLease(platformStore, `job:${job.name}`, owner, leaseMs);
    // Kept between rounds, so that an idle service writes twice a lease and not once a round.
    if (lease.until - (await platformStore.now()) > leaseMs / 2) return lease;
    return renewLease(platformStore, lease, leaseMs);
  }

  async function round(): Promise<Round> {
    if (stopping.aborted) throw new ServiceError('UNAVAILABLE', 'The service is stopping');
    if (job.everyReplica) return ran(await job.run(stopping));
    lease = await held();
    if (lease === undefined) return { ran: false, count: 0 };
    const keeper = keepLease(platformStore, lease, leaseMs);
    try {
      const { count } = ran(await job.run(AbortSignal.any([stopping, keeper.signal])));
      return { ran: !keeper.signal.aborted, count };
    } finally {
      lease = await keeper.end();
      if (lease === undefined) log.warn({ job: job.name }, 'lost the lease of a job');
      // the next round may be asked of any replica
      else if (job.intervalMs === undefined) await giveBack(lease);
    }
  }

  function ran(count: number): Round {
    failures = 0;
    return { ran: true, count };
  }

  /** The round after the one that runs. */
  function next(): Promise<Round> {
    const result = last.then(round);
    last = result.catch(() => undefined);
    return result;
  }

  async function tick(): Promise<void> {
    running = true;
    poked = false;
    try {
      await next();
    } catch (error) {
      if (stopping.aborted) return;
      failures++;
      log.error({ job: job.name, failures, error }, 'a job failed');
    }
    running = false;
    const { intervalMs = 0 } = job;
    const backOffMs = Math.max(intervalMs, Math.min(BACK_OFF_MAX_MS, intervalMs * 2 ** failures));
    schedule(failures > 0 ? backOffMs : poked ? 0 : intervalMs);
  }

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    if (!stopping.aborted && job.intervalMs !== undefined) timer = setTimeout(tick, delayMs);
  }

  async function giveBack(given: Lease): Promise<void> {
    lease = undefined;
    await releaseLease(platformStore, given).catch((error: unknown) =>
      log.warn({ job: job.name, error }, 'could not give back the lease of a job'),
    );
  }

  return {
    next,
    poke() {
      // A job that fails is not made to fail faster.
      if (poked || failures > 0) return;
      poked = true;
      if (!running) schedule(0);
    },
    async end() {
      clearTimeout(timer);
      await last;
      if (lease !== undefined) await giveBack(lease);
    },
  };
}
