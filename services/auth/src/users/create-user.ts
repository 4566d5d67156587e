import type { CreateUserRequest, CreateUserResponse } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { audited } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireName } from '../organizations/rules.ts';
import { userReply } from './message.ts';
import { requireEmail, requireGroups, requireRoles } from './rules.ts';
import type { Membership } from './store.ts';

/**
 * Who is known by this email elsewhere joins this organization as the same user, with the name given there.
 * @throws ServiceError INVALID_REQUEST, NOT_FOUND (organization), ALREADY_EXISTS with the id
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
    const [member, known] = await Promise.all([users.member(organizationId, email), users.byEmail(email)]);
    if (member)
      throw new ServiceError('ALREADY_EXISTS', 'The organization has a user of this email', {
        facts: { id: member.userId },
      });
    const user = known ?? { _id: newId(), email, name, createdAt: now };
    const membership: Membership = {
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
    await users.add(
      membership,
      known ? undefined : user,
      audited(context, organizationId, 'user.create', { type: 'user', id: user._id }, now),
    );
    return { user: userReply(membership) };
  });
}
