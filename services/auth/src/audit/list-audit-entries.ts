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
  deps: Pick<Deps, 'auditEntries' | 'users' | 'serverTokens'>,
  { beforeId, pageSize, actor, ...conditions }: ListAuditEntriesRequest,
  context: CallContext,
): Promise<ListAuditEntriesResponse> {
  const organizationId = organizationOfCall(context);
  const limit = requirePageSize(pageSize || undefined, PAGE_SIZES);
  const { auditEntries } = deps;
  const filter = requireFilter(conditions, actor ? await idsOf(deps, organizationId, actor) : undefined);
  if (beforeId !== '' && !isUuid(beforeId)) throw invalid('/beforeId', 'must be the id of an audit entry');
  const before = beforeId === '' ? undefined : await auditEntries.byId(organizationId, beforeId.toLowerCase());
  if (beforeId !== '' && !before) throw new ServiceError('NOT_FOUND', 'Audit entry not found');
  const entries = await auditEntries.list(organizationId, { ...filter, before, limit });
  return { entries: entries.map(auditEntryMessage) };
}

/** An actor is named by its id, or by its name: an operator or service, a user (email), or server tokens. */
async function idsOf(
  { users, serverTokens }: Pick<Deps, 'users' | 'serverTokens'>,
  organizationId: string,
  actor: string,
): Promise<string[]> {
  if (isUuid(actor)) return [actor.toLowerCase()];
  const [user, tokens] = await Promise.all([
    users.byEmail(actor.toLowerCase()),
    serverTokens.everNamed(organizationId, actor),
  ]);
  return [actor, ...(user ? [user._id] : []), ...tokens.map(({ _id }) => _id)];
}
