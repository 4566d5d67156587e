import type { CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Deps } from '../deps.ts';
import type { OrganizationRecord } from '../organizations/store.ts';
import type { MembershipRecord } from '../users/store.ts';

/**
 * Only a security_admin of an active organization may manage its server tokens. Organization and membership are read
 * from the store, because the principal of the call may be out of date.
 * @throws ServiceError FORBIDDEN
 */
export async function requireSecurityAdmin(
  { organizations, users }: Pick<Deps, 'organizations' | 'users'>,
  { principal }: CallContext,
): Promise<{ organization: OrganizationRecord; membership: MembershipRecord }> {
  const { organizationId, subject, name } = principal;
  const [organization, membership] = await Promise.all([
    organizations.byId(organizationId),
    users.membershipByUserId(organizationId, subject),
  ]);
  if (
    organization &&
    membership &&
    organization.state === 'active' &&
    membership.roles.includes('security_admin') &&
    membership.email === name
  )
    return { organization, membership };
  throw new ServiceError('FORBIDDEN', 'Security administrator required');
}
