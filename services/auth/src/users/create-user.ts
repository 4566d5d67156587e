import type { CreateUserRequest, CreateUserResponse } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireName } from '../organizations/rules.ts';
import { userMessage } from './message.ts';
import { requireEmail, requireGroups, requireRoles } from './rules.ts';
import type { MembershipRecord } from './store.ts';

/**
 * Adds a user to the call's organization. A user of another organization with this email is added as the same user, and
 * keeps the name that it has there.
 * @throws ServiceError INVALID_REQUEST, NOT_FOUND (organization), ALREADY_EXISTS with the id of the user
 */
export async function createUser(
  { clock, organizations, users }: Pick<Deps, 'clock' | 'organizations' | 'users'>,
  request: CreateUserRequest,
  context: CallContext,
): Promise<CreateUserResponse> {
  const organizationId = organizationOfCall(context);
  const email = requireEmail(request.email);
  const name = requireName('/name', request.name);
  const roles = requireRoles(request.roles);
  const groups = requireGroups(request.groups);
  const now = isoTime(clock.now());
  if (!(await organizations.byId(organizationId))) throw new ServiceError('NOT_FOUND', 'Organization not found');
  return retryOnConflict(context.signal, async () => {
    const [existing, knownUser] = await Promise.all([
      users.membershipByEmail(organizationId, email),
      users.byEmail(email),
    ]);
    if (existing)
      throw new ServiceError('ALREADY_EXISTS', 'The organization has a user of this email', {
        facts: { id: existing.userId },
      });
    const user = knownUser ?? { _id: newId(), email, name, createdAt: now };
    const membership: MembershipRecord = {
      _id: newId(),
      organizationId,
      userId: user._id,
      email,
      name: user.name,
      roles,
      groups,
      revision: 1,
      createdAt: now,
    };
    await users.create(
      membership,
      knownUser ? undefined : user,
      auditEntry(
        context,
        organizationId,
        'user.create',
        { type: 'user', id: user._id },
        now,
        changesOf({}, { email, roles, groups }),
      ),
    );
    return { user: userMessage(membership), known: knownUser !== undefined };
  });
}
