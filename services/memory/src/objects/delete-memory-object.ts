import type { DeleteMemoryObjectRequest, DeleteMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { changeEvents } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireMatch } from '../request-members.ts';
import { memoryObjectTag } from './message.ts';
import { nameInTag } from './rules.ts';
import { requireObject } from './store.ts';

export async function deleteMemoryObject(
  deps: Pick<Deps, 'objects' | 'fences' | 'usage' | 'counterShards' | 'clock' | 'mutex'>,
  request: DeleteMemoryObjectRequest,
  context: CallContext,
): Promise<DeleteMemoryObjectResponse> {
  const { objects, fences, usage, counterShards, clock, mutex } = deps;
  const attempt = async (): Promise<string> => {
    const { object, fence } = await requireObject(deps, context, request.id);
    requireMatch(request, memoryObjectTag(object, fence.type));
    const { _id: id, organizationId, typeId, key, revision } = object;
    const events = changeEvents(context, {
      eventType: 'memory.object.deleted.v1',
      id,
      revision: revision + 1,
      time: isoTime(clock.now()),
      names: { typeId, type: fence.type, key },
    });
    await counterShards.withShard(organizationId, context.signal, (shard) =>
      objects.remove(object, [
        fences.expectEpoch(typeId, fence.epoch, shard, -1, nameInTag(request, fence)),
        ...usage.shrink(organizationId, shard, { objects: -1, bytes: -(object.bytes ?? 0) }),
        ...events,
      ]),
    );
    return id;
  };
  const id = await mutex(organizationOfCall(context), request.id.toLowerCase(), () =>
    retryOnConflict(context.signal, attempt),
  );
  return { success: true, id };
}
