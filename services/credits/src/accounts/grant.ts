import type { GrantRequest, GrantResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { authorOf } from '../author.ts';
import { refusalError } from '../ledger/rules.ts';

/** The row that it writes is also its audit entry: the relay tells both. @throws ServiceError CONFLICT, INVALID_REQUEST */
export async function grant(
  { ledger }: Pick<Deps, 'ledger'>,
  request: GrantRequest,
  context: CallContext,
): Promise<GrantResponse> {
  const result = await ledger.grant(organizationOfCall(context), request, authorOf(context));
  if (result.outcome !== 'GRANTED') throw refusalError(result.outcome);
  return { account: result.account };
}
