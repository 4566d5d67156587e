import type { SetUserGroupsRequest, SetUserGroupsResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { changeMembership } from './change-membership.ts';
import { requireGroups } from './rules.ts';

/** @throws ServiceError INVALID_REQUEST, NOT_FOUND */
export async function setUserGroups(
  deps: Pick<Deps, 'clock' | 'users'>,
  { email, groups }: SetUserGroupsRequest,
  context: CallContext,
): Promise<SetUserGroupsResponse> {
  return { user: await changeMembership(deps, context, email, 'user.set_groups', { groups: requireGroups(groups) }) };
}
