import type { ListUsersRequest, ListUsersResponse } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { requirePageSize } from '../paging.ts';
import { userReply } from './message.ts';

/** By email. @throws ServiceError INVALID_REQUEST */
export async function listUsers(
  { users }: Pick<Deps, 'users'>,
  { afterEmail, pageSize }: ListUsersRequest,
  context: CallContext,
): Promise<ListUsersResponse> {
  const found = await users.list(organizationOfCall(context), afterEmail.toLowerCase(), requirePageSize(pageSize));
  return { users: found.map(userReply) };
}
