import type { AssumeUserRequest, AssumeUserResponse } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { tierOf } from '../tiers.ts';
import { requireEmail } from './rules.ts';

/**
 * Lets an operator act as a user: returns the user's principal as it is now, with the operator in `via`.
 * @throws ServiceError INVALID_REQUEST, NOT_FOUND, FORBIDDEN (organization deactivated)
 */
export async function assumeUser(
  { clock, organizations, users }: Pick<Deps, 'clock' | 'organizations' | 'users'>,
  request: AssumeUserRequest,
  context: CallContext,
): Promise<AssumeUserResponse> {
  const organizationId = organizationOfCall(context);
  const email = requireEmail(request.email);
  const [organization, member] = await Promise.all([
    organizations.byId(organizationId),
    users.membershipByEmail(organizationId, email),
  ]);
  if (!organization || !member) throw new ServiceError('NOT_FOUND', 'User not found');
  if (organization.state !== 'active') throw new ServiceError('FORBIDDEN', 'The organization is deactivated');
  await users.addAuditEntry(
    organizationId,
    auditEntry(context, organizationId, 'user.assume', { type: 'user', id: member.userId }, isoTime(clock.now())),
  );
  const { roles, groups } = member;
  const { limits } = tierOf(organization.tier);
  return {
    principal: {
      kind: 'USER',
      organizationId,
      subject: member.userId,
      name: email,
      roles,
      groups,
      tier: organization.tier,
      limits: { ...limits },
      via: context.principal.subject,
      memoryTypes: [],
      scopes: [],
    },
  };
}
