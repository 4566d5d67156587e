import type { ListOrganizationsRequest, ListOrganizationsResponse } from 'proto/auth/v1/auth.ts';
import type { Deps } from '../deps.ts';
import { requirePageSize } from '../paging.ts';
import { organizationReply } from './message.ts';

/** By name. @throws ServiceError INVALID_REQUEST */
export async function listOrganizations(
  { organizations }: Pick<Deps, 'organizations'>,
  { afterName, pageSize }: ListOrganizationsRequest,
): Promise<ListOrganizationsResponse> {
  const found = await organizations.list(afterName, requirePageSize(pageSize));
  return { organizations: found.map(organizationReply) };
}
