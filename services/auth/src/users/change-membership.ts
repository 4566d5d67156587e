import type { User as UserReply } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { audited } from '../events.ts';
import type { Deps } from '../deps.ts';
import { userReply } from './message.ts';
import { requireEmail } from './rules.ts';
import type { Membership } from './store.ts';

/**
 * Sets roles or groups of a user in the call's organization and records it; they hold from the next request on.
 * @throws ServiceError INVALID_REQUEST, NOT_FOUND
 */
export function changeMembership(
  { clock, users }: Pick<Deps, 'clock' | 'users'>,
  context: CallContext,
  givenEmail: string,
  action: string,
  change: Partial<Pick<Membership, 'roles' | 'groups'>>,
): Promise<UserReply> {
  const organizationId = organizationOfCall(context);
  const email = requireEmail(givenEmail);
  return retryOnConflict(context.signal, async () => {
    const membership = await users.member(organizationId, email);
    if (!membership) throw new ServiceError('NOT_FOUND', 'User not found');
    await users.change(
      membership,
      change,
      audited(context, organizationId, action, { type: 'user', id: membership.userId }, isoTime(clock.now())),
    );
    return userReply({ ...membership, ...change });
  });
}
