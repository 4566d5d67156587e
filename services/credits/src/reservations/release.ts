import type { ReleaseRequest, ReleaseResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { authorOf } from '../ledger/ledger.ts';
import { rejectionError } from '../ledger/rules.ts';

/** @throws ServiceError INVALID_REQUEST */
export async function release(
  { ledger }: Pick<Deps, 'ledger'>,
  { id }: ReleaseRequest,
  context: CallContext,
): Promise<ReleaseResponse> {
  const result = await ledger.release(organizationOfCall(context), id, authorOf(context));
  if (result.outcome !== 'FOUND') throw rejectionError(result.outcome);
  return { state: result.state };
}
