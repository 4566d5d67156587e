import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { codeOf, ServiceError } from 'platform/core/errors.ts';
import { actorOf } from 'platform/core/principal.ts';
import type { Deps } from './deps.ts';

/** Returns the outcome of a handler; an error TIER_LIMIT is also counted as a denial for the audit trail. */
export async function noted<T>(
  { denials, clock }: Pick<Deps, 'denials' | 'clock'>,
  context: CallContext,
  work: Promise<T>,
): Promise<T> {
  return work.catch((error: unknown) => {
    if (error instanceof ServiceError && error.reason === 'TIER_LIMIT') {
      const { principal, requestId } = context;
      denials.note({
        organizationId: organizationOfCall(context),
        actor: actorOf(principal),
        code: codeOf(error.reason),
        requestId,
        time: isoTime(clock.now()),
      });
    }
    throw error;
  });
}
