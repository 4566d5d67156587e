import type { ListUsersRequest, ListUsersResponse } from 'proto/auth/v1/auth.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { PAGE_SIZES } from '../organizations/rules.ts';
import { userMessage } from './message.ts';

/** In the order of their emails. @throws ServiceError INVALID_REQUEST */
export async function listUsers(
  { users }: Pick<Deps, 'users'>,
  { afterEmail, pageSize }: ListUsersRequest,
  context: CallContext,
): Promise<ListUsersResponse> {
  const organizationId = organizationOfCall(context);
  const limit = requirePageSize(pageSize || undefined, PAGE_SIZES);
  const found = await users.list(organizationId, afterEmail.toLowerCase(), limit);
  return { users: found.map(userMessage) };
}
