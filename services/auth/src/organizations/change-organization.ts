import type { Organization as OrganizationReply } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { audited } from '../events.ts';
import type { Deps } from '../deps.ts';
import { organizationReply } from './message.ts';
import type { Organization } from './store.ts';

/**
 * Sets state or tier and records it; what is so already stays as it is, unrecorded.
 * @throws ServiceError NOT_FOUND
 */
export function changeOrganization(
  { clock, organizations }: Pick<Deps, 'clock' | 'organizations'>,
  context: CallContext,
  id: string,
  action: string,
  change: Partial<Pick<Organization, 'state' | 'tier'>>,
): Promise<OrganizationReply> {
  return retryOnConflict(context.signal, async () => {
    const organization = await organizations.byId(id);
    if (!organization) throw new ServiceError('NOT_FOUND', 'Organization not found');
    const updatedAt = isoTime(clock.now());
    const changed = { ...organization, ...change, updatedAt };
    if (changed.state === organization.state && changed.tier === organization.tier)
      return organizationReply(organization);
    await organizations.change(
      organization,
      { ...change, updatedAt },
      audited(context, id, action, { type: 'organization', id }, updatedAt),
    );
    return organizationReply(changed);
  });
}
