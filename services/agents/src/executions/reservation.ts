import { setTimeout as delay } from 'node:timers/promises';
import type { CallOptions, ServiceClient } from 'platform/rpc/call.ts';
import { ServiceError, unavailable } from 'platform/core/errors.ts';
import type { Log } from 'platform/core/log.ts';
import type { CreditsServiceService, ReserveResponse } from 'proto/credits/v1/credits.ts';
import { isPlatformFault } from './rules.ts';
import type { SettledRuns } from './settled-runs.ts';
import type { ExecutionRecord, Executions } from './store.ts';

export type Credits = Pick<ServiceClient<typeof CreditsServiceService>, 'reserve' | 'extend' | 'settle' | 'release'>;

/** Spelled out instead of `Pick<Deps, …>`, because deps.ts imports this file. */
interface Needs {
  credits: Credits;
  releases: Releases;
  settledRuns: Pick<SettledRuns, 'note'>;
  executions: Pick<Executions, 'withdraw'>;
  config: { RESERVATION_TTL_MS: number; RUNS_AT_ONCE: number };
}

/**
 * Reserves the highest price of a run. When that fails, nothing was run or charged, and the record and its claim on the
 * idempotency key are removed.
 * @throws ServiceError INSUFFICIENT_CREDITS, TOO_MANY_RUNS, UNAVAILABLE; OUTCOME_UNKNOWN when the record may remain
 */
export async function reserve(
  deps: Needs,
  execution: ExecutionRecord,
  maxMicros: number,
  call: CallOptions,
): Promise<void> {
  const { RESERVATION_TTL_MS, RUNS_AT_ONCE } = deps.config;
  let response: ReserveResponse;
  try {
    response = await deps.credits.reserve(
      { id: execution._id, amountMicros: maxMicros, ttlMs: RESERVATION_TTL_MS, maxOpen: RUNS_AT_ONCE },
      call,
    );
  } catch (cause) {
    // The reservation may have been made all the same; without a release it would hold the credits until it expires.
    void deps.releases.start(deps.credits, execution._id, call);
    await withdraw(deps, execution);
    throw unavailable('The credits service is not available', cause);
  }
  if (response.outcome === 'RESERVED') return;

  await withdraw(deps, execution);
  if (response.outcome === 'INSUFFICIENT') {
    const facts = { needed: maxMicros / 1e6, available: response.availableMicros / 1e6 };
    throw new ServiceError('INSUFFICIENT_CREDITS', undefined, { facts });
  }
  if (response.outcome === 'TOO_MANY_OPEN')
    throw new ServiceError('TOO_MANY_RUNS', undefined, { headers: { 'Retry-After': '1' } });
  throw unavailable(
    'The credits service is not available',
    new Error(`reservation ${execution._id}: ${response.outcome}`),
  );
}

/**
 * Removes the record of a run that did not start; its idempotency key is free again.
 * @throws ServiceError OUTCOME_UNKNOWN when the record may remain: the reaper then interrupts the run, and the client
 * finds it among the executions
 */
export async function withdraw({ executions }: Pick<Needs, 'executions'>, execution: ExecutionRecord): Promise<void> {
  const failed = (cause: unknown): never => {
    throw new ServiceError('OUTCOME_UNKNOWN', undefined, {
      facts: { success: false, sessionId: execution.sessionId, agentExecutionId: execution._id },
      cause,
    });
  };
  if (!(await executions.withdraw(execution).catch(failed)))
    failed(new Error(`the reaper took over execution ${execution._id}`));
}

/**
 * Settles the charge of an ended run, or releases its reservation when the platform was at fault; idempotent.
 * @throws ServiceError from credits; the reaper tries again unless `isPermanent(error)`
 */
export async function settleOrRelease(
  { credits, settledRuns }: Pick<Needs, 'credits' | 'settledRuns'>,
  ended: ExecutionRecord,
  call: CallOptions,
): Promise<void> {
  if (isPlatformFault(ended)) await credits.release({ id: ended._id }, call);
  else await credits.settle({ id: ended._id, chargeMicros: ended.chargeMicros ?? 0 }, call);
  settledRuns.note(ended);
}

/** True when credits does not know the reservation, or no longer knows it: every further attempt would fail alike. */
export const isPermanent = (error: unknown): boolean =>
  error instanceof ServiceError && (error.reason === 'INVALID_REQUEST' || error.reason === 'NOT_FOUND');

export interface Releases {
  /**
   * Releases the reservation of a run that does not start. Resolves after the first attempt, also when it failed;
   * further attempts follow in the background until credits answers. Attempts matter even when no reservation is
   * known: a reserve call that failed may still be carried out later.
   */
  start(credits: Pick<Credits, 'release'>, id: string, call: CallOptions): Promise<void>;
  /** How many releases are being repeated. */
  readonly outstanding: number;
  /** Ends all attempts; what is not released expires. */
  stop(): void;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
const MAX_OUTSTANDING = 1_000;

/**
 * @param options.ttlMs time after which a reservation has expired by itself, so that a release is no longer repeated
 * @param options.maxOutstanding releases that may be repeated at once; a further one is attempted only once
 */
export function openReleases({
  ttlMs,
  log,
  maxOutstanding = MAX_OUTSTANDING,
}: {
  ttlMs: number;
  log: Log;
  maxOutstanding?: number;
}): Releases {
  const outstanding = new Set<string>();
  const stopping = new AbortController();
  const { signal } = stopping;

  /** False when the reservation has expired meanwhile. Rejects on `stop`. */
  async function repeat(attempt: () => Promise<boolean>): Promise<boolean> {
    const until = performance.now() + ttlMs;
    for (
      let pauseMs = FIRST_PAUSE_MS;
      performance.now() + pauseMs < until;
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
    ) {
      await delay(pauseMs, undefined, { ref: false, signal });
      if (await attempt()) return true;
    }
    return false;
  }

  return {
    async start(credits, id, call) {
      /** True when no further attempt is needed. */
      const attempt = (): Promise<boolean> => credits.release({ id }, call).then(() => true, isPermanent);
      const giveUp = (): void =>
        log.warn({ agentExecutionId: id, requestId: call.requestId }, 'a reservation was not released; it will expire');
      if (await attempt()) return;
      if (signal.aborted || outstanding.size >= maxOutstanding) return giveUp();
      outstanding.add(id);
      void repeat(attempt)
        .catch(() => false)
        .then((released) => {
          outstanding.delete(id);
          if (!released) giveUp();
        });
    },
    get outstanding() {
      return outstanding.size;
    },
    stop: () => stopping.abort(),
  };
}
