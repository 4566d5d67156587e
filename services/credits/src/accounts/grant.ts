import type { GrantRequest, GrantResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { authorOf } from '../ledger/ledger.ts';
import { rejectionError } from '../ledger/rules.ts';

/**
 * Adds credits to the account; idempotent. The relay publishes the row that this writes as an event and as an audit
 * entry.
 * @throws ServiceError CONFLICT, INVALID_REQUEST
 */
export async function grant(
  { ledger }: Pick<Deps, 'ledger'>,
  request: GrantRequest,
  context: CallContext,
): Promise<GrantResponse> {
  const result = await ledger.grant(organizationOfCall(context), request, authorOf(context));
  if (result.outcome !== 'GRANTED') throw rejectionError(result.outcome);
  return { account: result.account };
}
