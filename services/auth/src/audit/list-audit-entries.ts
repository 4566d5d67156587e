import type { ListAuditEntriesRequest, ListAuditEntriesResponse } from 'proto/auth/v1/auth.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { PAGE_SIZES } from '../organizations/rules.ts';
import { auditEntryMessage } from './message.ts';

/** Newest first. @throws ServiceError INVALID_REQUEST */
export async function listAuditEntries(
  { auditEntries }: Pick<Deps, 'auditEntries'>,
  { beforeId, action, pageSize }: ListAuditEntriesRequest,
  context: CallContext,
): Promise<ListAuditEntriesResponse> {
  const organizationId = organizationOfCall(context);
  const limit = requirePageSize(pageSize || undefined, PAGE_SIZES);
  if (beforeId !== '' && !isUuid(beforeId)) throw invalid('/beforeId', 'must be the id of an audit entry');
  const entries = await auditEntries.list(organizationId, beforeId.toLowerCase(), action, limit);
  return { entries: entries.map(auditEntryMessage) };
}
