import type { ListGrantsRequest, ListGrantsResponse } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import type { Deps } from '../deps.ts';
import { PAGE_SIZES } from '../organizations/rules.ts';
import { grantMessage } from './message.ts';

/** Newest first, with the revoked ones, until a day after their end. @throws ServiceError INVALID_REQUEST */
export async function listGrants(
  { grants }: Pick<Deps, 'grants'>,
  { pageSize, afterId }: ListGrantsRequest,
  context: CallContext,
): Promise<ListGrantsResponse> {
  const found = await grants.list(
    organizationOfCall(context),
    afterId.toLowerCase(),
    requirePageSize(pageSize || undefined, PAGE_SIZES),
  );
  return { grants: found.map(grantMessage) };
}
