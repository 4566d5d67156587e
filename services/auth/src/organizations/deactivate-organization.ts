import type { DeactivateOrganizationRequest, DeactivateOrganizationResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { changeOrganization } from './change-organization.ts';

/** Its tokens and users are refused from the next request on. @throws ServiceError NOT_FOUND */
export async function deactivateOrganization(
  deps: Pick<Deps, 'clock' | 'organizations'>,
  request: DeactivateOrganizationRequest,
  context: CallContext,
): Promise<DeactivateOrganizationResponse> {
  return {
    organization: await changeOrganization(deps, context, request.id, 'organization.deactivate', {
      state: 'deactivated',
    }),
  };
}
