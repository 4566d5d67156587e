import type { ReserveRequest, ReserveResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { authorOf } from '../author.ts';
import { refusalError } from '../ledger/rules.ts';

/** Answers what may be run: only RESERVED starts one. @throws ServiceError CONFLICT, INVALID_REQUEST */
export async function reserve(
  { ledger }: Pick<Deps, 'ledger'>,
  request: ReserveRequest,
  context: CallContext,
): Promise<ReserveResponse> {
  const result = await ledger.reserve(organizationOfCall(context), request, authorOf(context));
  switch (result.outcome) {
    case 'RESERVED':
    case 'ENDED':
      return result;
    case 'INSUFFICIENT':
    case 'TOO_MANY_OPEN':
      return { ...result, state: 'RESERVATION_STATE_UNSPECIFIED' };
    default:
      throw refusalError(result.outcome);
  }
}
