import type { ExportAuditEntriesRequest, ExportAuditEntriesResponse } from 'proto/auth/v1/auth.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { PAGE_SIZES } from '../organizations/rules.ts';
import { auditEntryMessage } from './message.ts';

/** In the order of the chain, after the entries of a release without chains. @throws ServiceError INVALID_REQUEST */
export async function exportAuditEntries(
  { auditEntries }: Pick<Deps, 'auditEntries'>,
  { pageSize, afterSequence, afterId }: ExportAuditEntriesRequest,
  context: CallContext,
): Promise<ExportAuditEntriesResponse> {
  const organizationId = organizationOfCall(context);
  const limit = requirePageSize(pageSize || undefined, PAGE_SIZES);
  if (afterSequence < 0) throw invalid('/afterSequence', 'must not be negative');
  if (afterId !== '' && !isUuid(afterId)) throw invalid('/afterId', 'must be the id of an audit entry');
  const unchained =
    afterSequence > 0 ? [] : await auditEntries.unchainedAfter(organizationId, afterId.toLowerCase(), limit);
  const left = limit - unchained.length;
  const chained = left === 0 ? [] : await auditEntries.chainAfter(organizationId, afterSequence, left);
  return { entries: [...unchained, ...chained].map(auditEntryMessage) };
}
