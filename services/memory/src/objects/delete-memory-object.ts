import type { DeleteMemoryObjectRequest, DeleteMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { changeOps } from '../events.ts';
import { refuseIfMatch } from '../conditions.ts';
import type { Deps } from '../deps.ts';
import { requireObject } from './find.ts';

type Used = Pick<Deps, 'objects' | 'fences' | 'usage' | 'counterShards' | 'clock' | 'mutex'>;

export async function deleteMemoryObject(
  deps: Used,
  request: DeleteMemoryObjectRequest,
  context: CallContext,
): Promise<DeleteMemoryObjectResponse> {
  const { objects, fences, usage, counterShards, clock, mutex } = deps;
  refuseIfMatch(request);
  const round = async (): Promise<string> => {
    const { object, fence } = await requireObject(deps, context, request.id);
    const { _id: id, organizationId, typeId, key, revision } = object;
    const change = changeOps(context, {
      noun: 'object',
      verb: 'delete',
      id,
      revision: revision + 1,
      time: isoTime(clock.now()),
      names: { typeId, type: fence.type, key },
    });
    await counterShards.take(organizationId, context.signal, (row) =>
      objects.remove(object, [
        fences.move(typeId, fence.epoch, row, -1),
        usage.removeObject(organizationId, row),
        ...change,
      ]),
    );
    return id;
  };
  return { success: true, id: await mutex(request.id, () => retryOnConflict(context.signal, round)) };
}
