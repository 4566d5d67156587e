import type { GetBalanceRequest, GetBalanceResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';

export async function getBalance(
  { ledger }: Pick<Deps, 'ledger'>,
  _request: GetBalanceRequest,
  context: CallContext,
): Promise<GetBalanceResponse> {
  return { account: await ledger.balance(organizationOfCall(context)) };
}
