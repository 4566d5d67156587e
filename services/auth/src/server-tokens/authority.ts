import type { CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Deps } from '../deps.ts';
import type { Organization } from '../organizations/store.ts';
import type { Membership } from '../users/store.ts';

/**
 * The caller's organization and membership as the store has them now: what the call asserts of them may be out of date.
 * @throws ServiceError FORBIDDEN unless the user is security_admin of an active organization
 */
export async function requireSecurityAdmin(
  { organizations, users }: Pick<Deps, 'organizations' | 'users'>,
  { principal }: CallContext,
): Promise<{ organization: Organization; membership: Membership }> {
  const { organizationId, subject, name } = principal;
  const [organization, membership] = await Promise.all([
    organizations.byId(organizationId),
    users.memberById(organizationId, subject),
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
