import type { RebuildLedgerRequest, RebuildLedgerResponse } from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';

/** @throws ServiceError NOT_SUPPORTED on the embedded engine, CONFLICT while another rebuild runs */
export async function rebuildLedger(
  { ledger }: Pick<Deps, 'ledger'>,
  _request: RebuildLedgerRequest,
  context: CallContext,
): Promise<RebuildLedgerResponse> {
  return { account: await ledger.rebuild(organizationOfCall(context)) };
}
