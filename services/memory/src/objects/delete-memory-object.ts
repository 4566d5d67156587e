import type { DeleteMemoryObjectRequest, DeleteMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import type { Deps } from '../deps.ts';
import { requireMatch } from '../request-members.ts';
import { memoryObjectTag } from './message.ts';
import { requireObject } from './store.ts';
import { writeObjects } from './write-objects.ts';

export async function deleteMemoryObject(
  deps: Pick<Deps, 'objects' | 'fences' | 'usage' | 'counterShards' | 'clock' | 'mutex'>,
  request: DeleteMemoryObjectRequest,
  context: CallContext,
): Promise<DeleteMemoryObjectResponse> {
  const { clock, mutex } = deps;
  const attempt = async (): Promise<string> => {
    const { object: before, fence } = await requireObject(deps, context, request.id);
    requireMatch(request, memoryObjectTag(before, fence.type));
    const type = { name: fence.type, epoch: fence.epoch };
    const expectName = request.ifMatch !== undefined;
    await writeObjects(deps, context, [{ before, time: isoTime(clock.now()), type, expectName }]);
    return before._id;
  };
  const id = await mutex(organizationOfCall(context), request.id.toLowerCase(), () =>
    retryOnConflict(context.signal, attempt),
  );
  return { success: true, id };
}
