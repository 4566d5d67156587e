import type { GetOrganizationRequest, GetOrganizationResponse } from 'proto/auth/v1/auth.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import type { Deps } from '../deps.ts';
import { organizationMessage } from './message.ts';

/** @throws ServiceError NOT_FOUND */
export async function getOrganization(
  { organizations }: Pick<Deps, 'organizations'>,
  { idOrName }: GetOrganizationRequest,
): Promise<GetOrganizationResponse> {
  requireText('idOrName', idOrName);
  const organization = (await organizations.byId(idOrName)) ?? (await organizations.byName(idOrName));
  if (!organization) throw new ServiceError('NOT_FOUND', 'Organization not found');
  return { organization: organizationMessage(organization) };
}
