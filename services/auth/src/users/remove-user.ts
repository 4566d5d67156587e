import type { RemoveUserRequest, RemoveUserResponse } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireEmail } from './rules.ts';

/** Removes the membership; the user stays in other organizations. @throws ServiceError INVALID_REQUEST, NOT_FOUND */
export async function removeUser(
  { clock, users }: Pick<Deps, 'clock' | 'users'>,
  request: RemoveUserRequest,
  context: CallContext,
): Promise<RemoveUserResponse> {
  const organizationId = organizationOfCall(context);
  const email = requireEmail(request.email);
  return retryOnConflict(context.signal, async () => {
    const membership = await users.membershipByEmail(organizationId, email);
    if (!membership) throw new ServiceError('NOT_FOUND', 'User not found');
    await users.remove(
      membership,
      auditEntry(
        context,
        organizationId,
        'user.remove',
        { type: 'user', id: membership.userId },
        isoTime(clock.now()),
        changesOf({ email, roles: membership.roles, groups: membership.groups }, {}),
      ),
    );
    return { id: membership.userId };
  });
}
