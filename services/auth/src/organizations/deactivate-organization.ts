import type { DeactivateOrganizationRequest, DeactivateOrganizationResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { changeOrganization } from './change-organization.ts';

/** Its server tokens and users are denied from the next request on; its runs end (ADR 58). @throws NOT_FOUND */
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
