import type { User } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { userMessage } from './message.ts';
import { requireEmail } from './rules.ts';
import type { MembershipRecord } from './store.ts';

/**
 * Sets roles or groups of a user in the call's organization, with an audit entry `action`. They apply from the next
 * request on.
 * @throws ServiceError INVALID_REQUEST, NOT_FOUND, CONFLICT
 */
export function changeMembership(
  { clock, users }: Pick<Deps, 'clock' | 'users'>,
  context: CallContext,
  givenEmail: string,
  action: string,
  change: Partial<Pick<MembershipRecord, 'roles' | 'groups'>>,
): Promise<User> {
  const organizationId = organizationOfCall(context);
  const email = requireEmail(givenEmail);
  return retryOnConflict(context.signal, async () => {
    const membership = await users.membershipByEmail(organizationId, email);
    if (!membership) throw new ServiceError('NOT_FOUND', 'User not found');
    await users.change(
      membership,
      change,
      auditEntry(
        context,
        organizationId,
        action,
        { type: 'user', id: membership.userId },
        isoTime(clock.now()),
        changesOf(authorityOf(membership), authorityOf({ ...membership, ...change })),
      ),
    );
    return userMessage({ ...membership, ...change });
  });
}

const authorityOf = ({ roles, groups }: MembershipRecord): Pick<MembershipRecord, 'roles' | 'groups'> => ({
  roles,
  groups,
});
