import type { SettleRequest, SettleResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { authorOf } from '../ledger/ledger.ts';
import { rejectionError } from '../ledger/rules.ts';

/** @throws ServiceError NOT_FOUND, INVALID_REQUEST */
export async function settle(
  { ledger }: Pick<Deps, 'ledger'>,
  { id, chargeMicros }: SettleRequest,
  context: CallContext,
): Promise<SettleResponse> {
  const result = await ledger.settle(organizationOfCall(context), id, chargeMicros, authorOf(context));
  if (result.outcome !== 'FOUND') throw rejectionError(result.outcome);
  const { state, chargedMicros, shortfallMicros } = result;
  return { state, chargedMicros, shortfallMicros };
}
