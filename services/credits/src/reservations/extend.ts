import type { ExtendRequest, ExtendResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { rejectionError } from '../ledger/rules.ts';

/** @throws ServiceError NOT_FOUND, INVALID_REQUEST */
export async function extend(
  { ledger }: Pick<Deps, 'ledger'>,
  { id, ttlMs }: ExtendRequest,
  context: CallContext,
): Promise<ExtendResponse> {
  const result = await ledger.extend(organizationOfCall(context), id, ttlMs);
  if (result.outcome !== 'FOUND') throw rejectionError(result.outcome);
  return { state: result.state };
}
