import type { ReserveRequest, ReserveResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { authorOf } from '../ledger/ledger.ts';
import { rejectionError } from '../ledger/rules.ts';

/** Only the outcome RESERVED lets the caller start its run. @throws ServiceError CONFLICT, INVALID_REQUEST */
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
      throw rejectionError(result.outcome);
  }
}
