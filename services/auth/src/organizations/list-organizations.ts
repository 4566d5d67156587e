import type { ListOrganizationsRequest, ListOrganizationsResponse } from 'proto/auth/v1/auth.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import type { Deps } from '../deps.ts';
import { organizationMessage } from './message.ts';
import { PAGE_SIZES } from './rules.ts';

/** In the order of their names. @throws ServiceError INVALID_REQUEST */
export async function listOrganizations(
  { organizations }: Pick<Deps, 'organizations'>,
  { afterName, pageSize }: ListOrganizationsRequest,
): Promise<ListOrganizationsResponse> {
  const found = await organizations.list(afterName, requirePageSize(pageSize || undefined, PAGE_SIZES));
  return { organizations: found.map(organizationMessage) };
}
