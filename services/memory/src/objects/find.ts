import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Fence, FenceStore } from '../types/fences.ts';
import { visibleTo } from '../types/visibility.ts';
import type { MemoryObjectRecord, ObjectStore } from './store.ts';

/**
 * The object of this id, and the fence of its type, if the caller may see them.
 * @throws ServiceError NOT_FOUND, alike for a malformed, an unknown, a hidden and another organization's id
 */
export async function requireObject(
  { objects, fences }: { objects: ObjectStore; fences: FenceStore },
  context: CallContext,
  id: string,
): Promise<{ object: MemoryObjectRecord; fence: Fence }> {
  const organizationId = organizationOfCall(context);
  const object = await objects.byId(organizationId, id.toLowerCase());
  const fence = object && (await fences.ofType(organizationId, object.typeId, visibleTo(context.principal)));
  if (!object || !fence) throw new ServiceError('NOT_FOUND', 'Memory object not found');
  return { object, fence };
}
