import type {
  LedgerRow as LedgerRowMessage,
  ListLedgerRowsRequest,
  ListLedgerRowsResponse,
} from 'proto/credits/v1/credits.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import type { LedgerRow } from './ledger.ts';

/** Newest first. @throws ServiceError INVALID_REQUEST */
export async function listLedgerRows(
  { ledger, config }: Pick<Deps, 'ledger' | 'config'>,
  { pageSize, beforeSequence }: ListLedgerRowsRequest,
  context: CallContext,
): Promise<ListLedgerRowsResponse> {
  const rows = await ledger.rows(organizationOfCall(context), beforeSequence, pageSize || config.LEDGER_PAGE_SIZE);
  return { rows: rows.map(messageOf) };
}

const messageOf = ({ actor, requestId: _, ...row }: LedgerRow): LedgerRowMessage => ({
  ...row,
  actor: `${actor.kind}:${actor.name}`,
});
