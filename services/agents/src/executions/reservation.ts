import type { CallOptions } from 'platform/rpc/call.ts';
import { ServiceError, unavailable } from 'platform/core/errors.ts';
import type { ReserveResponse } from 'proto/credits/v1/credits.ts';
import type { Deps } from '../deps.ts';
import { isPlatformFault } from './rules.ts';
import type { ExecutionRecord } from './store.ts';
import { withdraw } from './withdraw.ts';

type Needs = Pick<Deps, 'credits' | 'releases' | 'settledRuns' | 'executions' | 'clock' | 'config'>;

/**
 * Reserves the highest price of a run. When that fails, nothing was run or charged, and the record and its claim on the
 * idempotency key are removed.
 * @throws ServiceError INSUFFICIENT_CREDITS, TOO_MANY_RUNS, UNAVAILABLE; RUN_CANCELLED, OUTCOME_UNKNOWN (`withdraw`)
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
