import type { ListAuditEntriesRequest, ListAuditEntriesResponse } from 'proto/auth/v1/auth.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { PAGE_SIZES } from '../organizations/rules.ts';
import { auditEntryMessage } from './message.ts';
import { requireFilter } from './filter.ts';

/** Newest first. @throws ServiceError INVALID_REQUEST; NOT_FOUND when there is no entry `beforeId` */
export async function listAuditEntries(
  { auditEntries }: Pick<Deps, 'auditEntries'>,
  { beforeId, pageSize, ...conditions }: ListAuditEntriesRequest,
  context: CallContext,
): Promise<ListAuditEntriesResponse> {
  const organizationId = organizationOfCall(context);
  const limit = requirePageSize(pageSize || undefined, PAGE_SIZES);
  const filter = requireFilter(conditions);
  if (beforeId !== '' && !isUuid(beforeId)) throw invalid('/beforeId', 'must be the id of an audit entry');
  const before = beforeId === '' ? undefined : await auditEntries.byId(organizationId, beforeId.toLowerCase());
  if (beforeId !== '' && !before) throw new ServiceError('NOT_FOUND', 'Audit entry not found');
  const entries = await auditEntries.list(organizationId, { ...filter, before, limit });
  return { entries: entries.map(auditEntryMessage) };
}
