import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { codeOf, ServiceError } from 'platform/core/errors.ts';
import { actorOf } from 'platform/core/principal.ts';
import type { Deps } from '../deps.ts';
import type { Organization } from '../organizations/store.ts';
import type { Membership } from '../users/store.ts';

/**
 * The caller's organization and membership as the store has them now: what the call asserts of them may be out of date.
 * @throws ServiceError FORBIDDEN, in the audit trail, unless the user is security_admin of an active organization
 */
export async function requireSecurityAdmin(
  { clock, organizations, users, denials }: Pick<Deps, 'clock' | 'organizations' | 'users' | 'denials'>,
  { principal, requestId }: CallContext,
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
  denials.note({
    organizationId,
    actor: actorOf(principal),
    code: codeOf('FORBIDDEN'),
    requestId,
    time: isoTime(clock.now()),
  });
  throw new ServiceError('FORBIDDEN', 'Security administrator required');
}
