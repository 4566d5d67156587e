import type { SetUserRolesRequest, SetUserRolesResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { changeMembership } from './change-membership.ts';
import { requireRoles } from './rules.ts';

/** @throws ServiceError INVALID_REQUEST, NOT_FOUND */
export async function setUserRoles(
  deps: Pick<Deps, 'clock' | 'users'>,
  { email, roles }: SetUserRolesRequest,
  context: CallContext,
): Promise<SetUserRolesResponse> {
  return { user: await changeMembership(deps, context, email, 'user.set_roles', { roles: requireRoles(roles) }) };
}
