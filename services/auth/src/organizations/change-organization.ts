import type { Organization } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { organizationMessage } from './message.ts';
import type { OrganizationRecord } from './store.ts';

/**
 * Sets the state or the tier, with an audit entry `action`. Idempotent: what does not change the organization leaves no
 * entry.
 * @throws ServiceError NOT_FOUND, CONFLICT
 */
export async function changeOrganization(
  { clock, organizations }: Pick<Deps, 'clock' | 'organizations'>,
  context: CallContext,
  id: string,
  action: string,
  change: Partial<Pick<OrganizationRecord, 'state' | 'tier'>>,
): Promise<Organization> {
  requireText('id', id);
  return retryOnConflict(context.signal, async () => {
    const organization = await organizations.byId(id);
    if (!organization) throw new ServiceError('NOT_FOUND', 'Organization not found');
    const updatedAt = isoTime(clock.now());
    const changed = { ...organization, ...change, updatedAt };
    if (changed.state === organization.state && changed.tier === organization.tier)
      return organizationMessage(organization);
    await organizations.change(
      organization,
      { ...change, updatedAt },
      auditEntry(
        context,
        id,
        action,
        { type: 'organization', id },
        updatedAt,
        changesOf(stateOf(organization), stateOf(changed)),
      ),
    );
    return organizationMessage(changed);
  });
}

const stateOf = ({ state, tier }: OrganizationRecord): Pick<OrganizationRecord, 'state' | 'tier'> => ({ state, tier });
