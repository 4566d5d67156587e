import type { ActivateOrganizationRequest, ActivateOrganizationResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { changeOrganization } from './change-organization.ts';

/** @throws ServiceError NOT_FOUND */
export async function activateOrganization(
  deps: Pick<Deps, 'clock' | 'organizations'>,
  request: ActivateOrganizationRequest,
  context: CallContext,
): Promise<ActivateOrganizationResponse> {
  return {
    organization: await changeOrganization(deps, context, request.id, 'organization.activate', { state: 'active' }),
  };
}
