import { ServiceError } from 'platform/errors.ts';
import type { Principal } from 'platform/principal.ts';
import { visibleTo, type Visible } from '../visibility.ts';
import type { TypeStore } from './store.ts';

/** @throws ServiceError ALREADY_EXISTS, with the id of the type that has the name if the principal may see it */
export async function requireFreeName(types: TypeStore, principal: Principal, organizationId: string, type: string): Promise<void> {
  const taken = await types.byName(organizationId, type, {});
  if (!taken) return;
  const { visibility }: Visible = visibleTo(principal);
  const seen = visibility === undefined || visibility === taken.visibility;
  throw new ServiceError('ALREADY_EXISTS', 'A memory type of this name exists', { facts: seen ? { id: taken._id } : {} });
}
