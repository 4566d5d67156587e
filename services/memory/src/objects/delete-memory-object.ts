import type { DeleteMemoryObjectRequest, DeleteMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import type { Deps } from '../deps.ts';
import { requireMatch } from '../request-members.ts';
import { memoryObjectTag } from './message.ts';
import { requireObject } from './store.ts';
import { planDeletion } from '../references/plan-deletion.ts';
import type { ObjectWrite } from './grouped-writes.ts';
import { writeObjects } from './write-objects.ts';

type Needs = Parameters<typeof planDeletion>[0] & Pick<Deps, 'groupedWrites' | 'usage' | 'clock' | 'config' | 'mutex'>;

export async function deleteMemoryObject(
  deps: Needs,
  request: DeleteMemoryObjectRequest,
  context: CallContext,
): Promise<DeleteMemoryObjectResponse> {
  const { clock, mutex } = deps;
  const attempt = async (): Promise<string> => {
    const { object: before, type: header } = await requireObject(deps, context, request.id);
    requireMatch(request, memoryObjectTag(before, header.type));
    const type = { name: header.type, epoch: header.epoch };
    const expectName = request.ifMatch !== undefined;
    const time = isoTime(clock.now());
    const alone = !before.referrers && !before.references;
    const { writes, ops } = alone
      ? { writes: [{ before, time, type }], ops: [] }
      : await planDeletion(deps, context.principal, [before], { time });
    const [root, ...others] = writes as [ObjectWrite, ...ObjectWrite[]];
    await writeObjects(deps, context, [{ ...root, type, expectName }, ...others], { further: ops });
    return before._id;
  };
  const id = await mutex(organizationOfCall(context), request.id.toLowerCase(), () =>
    retryOnConflict(context.signal, attempt),
  );
  return { success: true, id };
}
