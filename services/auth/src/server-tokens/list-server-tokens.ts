import type { ListServerTokensRequest, ListServerTokensResponse } from 'proto/auth/v1/auth.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { PAGE_SIZES } from '../organizations/rules.ts';
import { requireSecurityAdmin } from './authority.ts';
import { serverTokenMessage } from './message.ts';

type Needs = Pick<Deps, 'clock' | 'organizations' | 'users' | 'serverTokens'>;

/** Newest first, with the revoked ones. @throws ServiceError FORBIDDEN, INVALID_REQUEST */
export async function listServerTokens(
  deps: Needs,
  { afterId, pageSize }: ListServerTokensRequest,
  context: CallContext,
): Promise<ListServerTokensResponse> {
  const { organization } = await requireSecurityAdmin(deps, context);
  const tokens = await deps.serverTokens.list(
    organization._id,
    afterId,
    requirePageSize(pageSize || undefined, PAGE_SIZES),
  );
  return { serverTokens: tokens.map(serverTokenMessage) };
}
