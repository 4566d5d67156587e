import type { CreateOrganizationRequest, CreateOrganizationResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireTier } from '../tiers.ts';
import { organizationMessage } from './message.ts';
import { foldName, requireName } from './rules.ts';
import type { OrganizationRecord } from './store.ts';

/** @throws ServiceError INVALID_REQUEST, ALREADY_EXISTS with the id of the organization that has the name */
export async function createOrganization(
  { clock, organizations }: Pick<Deps, 'clock' | 'organizations'>,
  request: CreateOrganizationRequest,
  context: CallContext,
): Promise<CreateOrganizationResponse> {
  const name = requireName('/name', request.name);
  const tier = requireTier(request.tier);
  const now = isoTime(clock.now());
  return retryOnConflict(context.signal, async () => {
    const taken = await organizations.byName(name);
    if (taken)
      throw new ServiceError('ALREADY_EXISTS', 'An organization of this name exists', { facts: { id: taken._id } });
    const organization: OrganizationRecord = {
      _id: newId(),
      name,
      nameKey: foldName(name),
      tier,
      state: 'active',
      tokenEpoch: 0,
      createdAt: now,
      updatedAt: now,
    };
    await organizations.create(
      organization,
      auditEntry(
        context,
        organization._id,
        'organization.create',
        { type: 'organization', id: organization._id },
        now,
        changesOf({}, { name, tier }),
      ),
    );
    return { organization: organizationMessage(organization) };
  });
}
