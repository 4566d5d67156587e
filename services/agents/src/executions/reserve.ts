import type { CallContext } from 'platform/rpc/call.ts';
import { ServiceError, unavailable } from 'platform/core/errors.ts';
import type { ReserveResponse } from 'proto/credits/v1/credits.ts';
import type { Deps } from '../deps.ts';
import type { Execution } from './store.ts';
import { withdraw } from './withdraw.ts';

type ReserveDeps = Pick<Deps, 'credits' | 'releases' | 'executions' | 'config'>;

/**
 * Sets the highest price of the run aside. When that fails nothing was run or charged: the record and its claim are taken back.
 * @throws ServiceError INSUFFICIENT_CREDITS, TOO_MANY_RUNS, UNAVAILABLE, OUTCOME_UNKNOWN when the record may have stayed
 */
export async function reserve(
  deps: ReserveDeps,
  execution: Execution,
  maxMicros: number,
  context: CallContext,
): Promise<void> {
  const call = { principal: context.principal, requestId: context.requestId };
  let answer: ReserveResponse;
  try {
    answer = await deps.credits.reserve(
      {
        id: execution._id,
        amountMicros: maxMicros,
        ttlMs: deps.config.RESERVATION_TTL_MS,
        maxOpen: deps.config.RUNS_AT_ONCE,
      },
      call,
    );
  } catch (cause) {
    // The reservation may be open all the same; without a release it would hold the credits until it expires.
    void deps.releases.begin(deps.credits, execution._id, call);
    await withdraw(deps, execution);
    throw unavailable('Credits are not available', cause);
  }
  if (answer.outcome === 'RESERVED') return;

  await withdraw(deps, execution);
  if (answer.outcome === 'INSUFFICIENT') {
    const facts = { needed: maxMicros / 1e6, available: answer.availableMicros / 1e6 };
    throw new ServiceError('INSUFFICIENT_CREDITS', undefined, { facts });
  }
  if (answer.outcome === 'TOO_MANY_OPEN')
    throw new ServiceError('TOO_MANY_RUNS', undefined, { headers: { 'Retry-After': '1' } });
  throw unavailable('Credits are not available', new Error(`reservation ${execution._id} answered ${answer.outcome}`));
}
