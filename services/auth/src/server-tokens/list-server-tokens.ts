import type { ListServerTokensRequest, ListServerTokensResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { requirePageSize } from '../paging.ts';
import { requireSecurityAdmin } from './authority.ts';
import { serverTokenReply } from './message.ts';

type Parts = Pick<Deps, 'clock' | 'organizations' | 'users' | 'serverTokens' | 'denials'>;

/** Newest first, revoked ones too. @throws ServiceError FORBIDDEN, INVALID_REQUEST */
export async function listServerTokens(
  deps: Parts,
  { afterId, pageSize }: ListServerTokensRequest,
  context: CallContext,
): Promise<ListServerTokensResponse> {
  const { organization } = await requireSecurityAdmin(deps, context);
  const tokens = await deps.serverTokens.list(organization._id, afterId, requirePageSize(pageSize));
  return { serverTokens: tokens.map(serverTokenReply) };
}
