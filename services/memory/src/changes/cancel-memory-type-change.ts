import type { CancelMemoryTypeChangeRequest, CancelMemoryTypeChangeResponse } from 'proto/memory/v1/memory.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import type { Deps } from '../deps.ts';
import { memoryTypeMessage, memoryTypeTag } from '../types/message.ts';
import { relationNames } from '../types/relation-names.ts';
import { relationsOf } from '../types/relations.ts';
import { requireType } from '../types/store.ts';
import { endWithout } from './end-change.ts';

export async function cancelMemoryTypeChange(
  deps: Pick<Deps, 'types' | 'fences' | 'usage' | 'changes' | 'clock'>,
  { id }: CancelMemoryTypeChangeRequest,
  context: CallContext,
): Promise<CancelMemoryTypeChangeResponse> {
  const { types, changes } = deps;
  return retryOnConflict(context.signal, async () => {
    const type = await requireType(types, context, id);
    const { _id, organizationId } = type;
    const change = await changes.byType(organizationId, _id);
    if (change?.state !== 'running') throw new ServiceError('NOT_FOUND', 'Nothing is under way for this memory type');
    // Their references are gone, and those that are left would point to nothing.
    const refersToItself = relationsOf(type).some(({ targetTypeId }) => targetTypeId === _id);
    if (change.action === 'delete' && change.cursor !== '' && refersToItself)
      throw new ServiceError(
        'CONFLICT',
        'The deletion has begun, and the objects that are left may refer to deleted ones',
      );
    const cancelled = await endWithout(deps, change, type, 'cancelled');
    const present = { ...type, state: 'active' as const };
    const names = await relationNames(deps, [type]);
    return { memoryType: memoryTypeMessage(present, cancelled, names), etag: memoryTypeTag(present, cancelled, names) };
  });
}
