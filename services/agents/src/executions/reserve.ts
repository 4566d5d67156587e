import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { codeOf, ServiceError, unavailable, type KnownReason } from 'platform/core/errors.ts';
import { actorOf } from 'platform/core/principal.ts';
import type { ReserveResponse } from 'proto/credits/v1/credits.ts';
import type { Deps } from '../deps.ts';
import type { Execution } from './store.ts';
import { withdraw } from './withdraw.ts';

type ReserveDeps = Pick<Deps, 'credits' | 'releases' | 'executions' | 'denials' | 'clock' | 'config'>;

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
    throw refused(deps, context, 'INSUFFICIENT_CREDITS', { facts });
  }
  if (answer.outcome === 'TOO_MANY_OPEN')
    throw refused(deps, context, 'TOO_MANY_RUNS', { headers: { 'Retry-After': '1' } });
  throw unavailable('Credits are not available', new Error(`reservation ${execution._id} answered ${answer.outcome}`));
}

function refused(
  { denials, clock }: Pick<ReserveDeps, 'denials' | 'clock'>,
  { principal, requestId }: CallContext,
  reason: KnownReason,
  extras: ConstructorParameters<typeof ServiceError>[2],
): ServiceError {
  denials.note({
    organizationId: principal.organizationId,
    actor: actorOf(principal),
    code: codeOf(reason),
    requestId,
    time: isoTime(clock.now()),
  });
  return new ServiceError(reason, undefined, extras);
}
