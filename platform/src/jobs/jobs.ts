import { strict as assert } from 'node:assert';
import { ServiceError } from '../core/errors.ts';
import { acquireLease, keepLease, releaseLease, renewLease, type Lease } from './lease.ts';
import type { Log } from '../core/log.ts';
import { outsideTraces } from '../telemetry/traces.ts';
import type { PlatformStore } from '../store/store.ts';

/**
 * Background work of a service. Only the replica that holds the job's lease runs it, one round at a time. A replica
 * may notice late that it lost the lease, so a job must write with compare-and-set only.
 */
export interface Job {
  name: string;
  /** One sentence, shown by `npm run admin -- job list`. */
  description: string;
  /** Without it the job runs on request only. */
  intervalMs?: number;
  /** `runSoon` starts a round at once, but not within this time after a round that processed items; default 0. */
  paceMs?: number;
  /** Every replica runs the job, without a lease: for work on a process's own memory. */
  everyReplica?: true;
  /**
   * One round; resolves to the number of items processed. `signal` aborts when the process drains or the lease is
   * lost.
   */
  run(signal: AbortSignal): Promise<number>;
}

export interface JobRunner {
  /**
   * Runs one round now. `ran` is false when another replica holds the lease, or when the lease was lost during the
   * round; `count` is the number of items processed, in the second case up to the loss.
   * @throws ServiceError NOT_FOUND when there is no such job; UNAVAILABLE when the service is stopping; what the job
   * throws
   */
  runNow(name: string): Promise<{ ran: boolean; count: number }>;
  /**
   * Starts the next round of a job soon, for example after an outbox entry was written: see `paceMs`. Cheap; calls are
   * coalesced.
   */
  runSoon(name: string): void;
  list(): readonly Job[];
  /** Starts no more rounds, waits for the running ones, releases the leases. */
  stop(): Promise<void>;
}

export interface JobRunnerOptions {
  platformStore: PlatformStore;
  /** Unique per process. */
  owner: string;
  leaseMs: number;
  log: Log;
  /** Told of each round of this replica that has ended. */
  onRound?: OnRound;
}
export type OnRound = (job: string, outcome: 'succeeded' | 'failed', count: number, tookMs: number) => void;

const BACK_OFF_MAX_MS = 30_000;

/**
 * Runs each job at its interval, one round at a time, under the lease `job:<name>` unless it runs on every replica. A
 * round that fails is logged and retried with exponential back-off up to 30 s.
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
    runSoon(name) {
      const loop = loops.get(name);
      assert(loop, `no job ${name}`);
      loop.runSoon();
    },
    list: () => jobs,
    async stop() {
      stopping.abort(new Error('the process drains'));
      await Promise.all([...loops.values()].map((loop) => loop.end()));
    },
  };
}

type Round = Awaited<ReturnType<JobRunner['runNow']>>;

function startLoop(job: Job, { platformStore, owner, leaseMs, log, onRound }: JobRunnerOptions, stopping: AbortSignal) {
  let lease: Lease | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let failures = 0;
  let running = false;
  /** True when `runSoon` was called and no round has started since. */
  let wanted = false;
  let timer: NodeJS.Timeout | undefined;
  const { paceMs = 0 } = job;
  /** By `performance.now`: `runSoon` starts no round before. */
  let notBefore = 0;
  schedule(0);

  async function ensureLease(): Promise<Lease | undefined> {
    if (lease === undefined) return acquireLease(platformStore, `job:${job.name}`, owner, leaseMs);
    // The lease is kept between rounds: an idle job writes twice per lease time and not once per round.
    if (lease.until - (await platformStore.now()) > leaseMs / 2) return lease;
    return renewLease(platformStore, lease, leaseMs);
  }

  async function round(): Promise<Round> {
    if (stopping.aborted) throw new ServiceError('UNAVAILABLE', 'The service is stopping');
    if (job.everyReplica) return succeeded(await job.run(stopping));
    lease = await ensureLease();
    if (lease === undefined) return { ran: false, count: 0 };
    const keeper = keepLease(platformStore, lease, leaseMs);
    try {
      const { count } = succeeded(await job.run(AbortSignal.any([stopping, keeper.signal])));
      return { ran: !keeper.signal.aborted, count };
    } finally {
      lease = await keeper.end();
      if (lease === undefined) log.warn({ job: job.name }, 'lost the lease of a job');
      // Any replica may be asked for the next round.
      else if (job.intervalMs === undefined) await release(lease);
    }
  }

  /** A round is no failure of the job when the process stops. */
  async function toldRound(tell: OnRound): Promise<Round> {
    const startedAt = performance.now();
    try {
      const done = await round();
      if (done.ran) tell(job.name, 'succeeded', done.count, performance.now() - startedAt);
      return done;
    } catch (error) {
      if (!stopping.aborted) tell(job.name, 'failed', 0, performance.now() - startedAt);
      throw error;
    }
  }

  function succeeded(count: number): Round {
    failures = 0;
    return { ran: true, count };
  }

  /** Runs a round after those that were started before. */
  function next(): Promise<Round> {
    const result = last.then(onRound ? () => toldRound(onRound) : round);
    last = result.catch(() => undefined);
    return result;
  }

  async function tick(): Promise<void> {
    running = true;
    wanted = false;
    try {
      const { count } = await next();
      notBefore = performance.now() + (count > 0 ? paceMs : 0);
    } catch (error) {
      if (stopping.aborted) return;
      failures++;
      log.error({ job: job.name, failures, error }, 'a job failed');
    }
    running = false;
    const { intervalMs = 0 } = job;
    const backOffMs = Math.max(intervalMs, Math.min(BACK_OFF_MAX_MS, intervalMs * 2 ** failures));
    schedule(failures > 0 ? backOffMs : wanted ? untilAllowedMs() : intervalMs);
  }

  const untilAllowedMs = (): number => Math.max(0, notBefore - performance.now());

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    if (!stopping.aborted && job.intervalMs !== undefined) timer = setTimeout(() => void outsideTraces(tick), delayMs);
  }

  async function release(held: Lease): Promise<void> {
    lease = undefined;
    await releaseLease(platformStore, held).catch((error: unknown) =>
      log.warn({ job: job.name, error }, 'could not release the lease of a job'),
    );
  }

  return {
    next,
    runSoon() {
      // While a job fails, its back-off is not shortened.
      if (wanted || failures > 0) return;
      wanted = true;
      if (!running) schedule(untilAllowedMs());
    },
    async end() {
      clearTimeout(timer);
      await last;
      if (lease !== undefined) await release(lease);
    },
  };
}
