import type {
  AuditEntry as AuditEntryReply,
  ListAuditEntriesRequest,
  ListAuditEntriesResponse,
} from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { requirePageSize } from '../paging.ts';
import type { AuditEntry } from './store.ts';

/** @throws ServiceError INVALID_REQUEST */
export async function listAuditEntries(
  { auditTrail }: Pick<Deps, 'auditTrail'>,
  request: ListAuditEntriesRequest,
  context: CallContext,
): Promise<ListAuditEntriesResponse> {
  const entries = await auditTrail.list(
    organizationOfCall(context),
    request.beforeId,
    request.action,
    requirePageSize(request.pageSize),
  );
  return { entries: entries.map(entryReply) };
}

const entryReply = ({ _id, targetType, targetId, code, ...facts }: AuditEntry): AuditEntryReply => ({
  ...facts,
  id: _id,
  targetType: targetType ?? undefined,
  targetId: targetId ?? undefined,
  code: code ?? undefined,
});
