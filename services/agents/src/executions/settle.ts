import type { CallOptions } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Deps } from '../deps.ts';
import { isPlatformFault } from './rules.ts';
import type { Execution } from './store.ts';

/** Brings the charge of an ended run to the ledger, as often as it is called, once. @throws ServiceError of credits: the reaper tries again */
export async function settle(
  deps: Pick<Deps, 'credits' | 'executions'>,
  ended: Execution,
  call: CallOptions,
): Promise<void> {
  if (isPlatformFault(ended)) await deps.credits.release({ id: ended._id }, call);
  else await deps.credits.settle({ id: ended._id, chargeMicros: ended.chargeMicros ?? 0 }, call);
  await deps.executions.settled(ended);
}

/** Credits refuses an id that it has not, or not any longer: so it will at every repeat. */
export const isFinal = (error: unknown): boolean =>
  error instanceof ServiceError && (error.reason === 'INVALID_REQUEST' || error.reason === 'NOT_FOUND');
