import { ServiceError } from 'platform/core/errors.ts';
import type { Principal } from 'platform/core/principal.ts';
import { visibleTo } from './visibility.ts';
import type { TypeStore } from './store.ts';

/** @throws ServiceError ALREADY_EXISTS, with the id of the type that has the name if the principal may see it */
export async function requireFreeName(
  types: TypeStore,
  principal: Principal,
  organizationId: string,
  type: string,
): Promise<void> {
  if (!(await types.byName(organizationId, type, {}))) return;
  const seen = await types.byName(organizationId, type, visibleTo(principal));
  throw new ServiceError('ALREADY_EXISTS', 'A memory type of this name exists', {
    facts: seen ? { id: seen._id } : {},
  });
}
