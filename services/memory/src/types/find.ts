import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { visibleTo } from './visibility.ts';
import type { MemoryTypeRecord, TypeStore } from './store.ts';

/**
 * The type of this id that the caller may see.
 * @throws ServiceError NOT_FOUND, alike for a malformed, an unknown, a hidden and another organization's id
 */
export async function requireType(types: TypeStore, context: CallContext, id: string): Promise<MemoryTypeRecord> {
  const type = await types.byId(organizationOfCall(context), id.toLowerCase(), visibleTo(context.principal));
  if (!type) throw new ServiceError('NOT_FOUND', 'Memory type not found');
  return type;
}
