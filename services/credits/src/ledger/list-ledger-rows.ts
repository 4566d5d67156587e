import type {
  LedgerRow as LedgerRowMessage,
  ListLedgerRowsRequest,
  ListLedgerRowsResponse,
} from 'proto/credits/v1/credits.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { MAX_PAGE_SIZE } from './arguments.ts';
import type { LedgerRow } from './ledger.ts';

/** One page of rows, newest first. @throws ServiceError INVALID_REQUEST */
export async function listLedgerRows(
  { ledger, config }: Pick<Deps, 'ledger' | 'config'>,
  { pageSize, beforeSequence }: ListLedgerRowsRequest,
  context: CallContext,
): Promise<ListLedgerRowsResponse> {
  const limit = requirePageSize(pageSize || undefined, { default: config.LEDGER_PAGE_SIZE, max: MAX_PAGE_SIZE });
  const rows = await ledger.rows(organizationOfCall(context), beforeSequence, limit);
  return { rows: rows.map(ledgerRowMessage) };
}

const ledgerRowMessage = ({ actor, requestId: _, ...row }: LedgerRow): LedgerRowMessage => ({
  ...row,
  actor: `${actor.kind}:${actor.name}`,
});
