import type { SetOrganizationTierRequest, SetOrganizationTierResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { requireTier } from '../tiers.ts';
import { changeOrganization } from './change-organization.ts';

/** @throws ServiceError INVALID_REQUEST, NOT_FOUND */
export async function setOrganizationTier(
  deps: Pick<Deps, 'clock' | 'organizations'>,
  request: SetOrganizationTierRequest,
  context: CallContext,
): Promise<SetOrganizationTierResponse> {
  return {
    organization: await changeOrganization(deps, context, request.id, 'organization.set_tier', {
      tier: requireTier(request.tier),
    }),
  };
}
