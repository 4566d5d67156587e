import type { UpdateMemoryObjectRequest, UpdateMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { changeOps } from '../events.ts';
import { refuseIfMatch, requireMembers } from '../conditions.ts';
import type { Deps } from '../deps.ts';
import { readObject } from '../json-object.ts';
import { requireType } from '../types/find.ts';
import { requireValidContent } from './content.ts';
import { requireObject } from './find.ts';
import { objectMessage } from './message.ts';
import { requireUnchanged } from './rules.ts';

type Used = Pick<Deps, 'types' | 'objects' | 'fences' | 'counterShards' | 'clock' | 'config' | 'mutex' | 'schedule'>;

export async function updateMemoryObject(
  deps: Used,
  request: UpdateMemoryObjectRequest,
  context: CallContext,
): Promise<UpdateMemoryObjectResponse> {
  const { types, objects, fences, counterShards, clock, config, mutex, schedule } = deps;
  refuseIfMatch(request);
  const content = requireMembers(request).includes('content')
    ? readObject('content', request.content, config.MEMORY_CONTENT_MAX_BYTES)
    : undefined;

  const round = async (): Promise<UpdateMemoryObjectResponse> => {
    const { object, fence } = await requireObject(deps, context, request.pathId);
    const { _id: id, typeId, key } = object;
    requireUnchanged(request, { id, typeId, type: fence.type, key });
    if (content === undefined) return { memoryObject: objectMessage(object, fence.type) };

    const found = await requireType(types, context, typeId);
    await requireValidContent(schedule, found, content);
    const { type, version, epoch } = found;
    const after = {
      ...object,
      content: request.content!,
      schemaVersion: version,
      revision: object.revision + 1,
      updatedAt: isoTime(clock.now()),
    };
    const change = changeOps(context, {
      noun: 'object',
      verb: 'update',
      id,
      revision: after.revision,
      time: after.updatedAt,
      names: { typeId, type, key },
    });
    await counterShards.take(object.organizationId, context.signal, (row) =>
      objects.replace(object, after, [fences.move(typeId, epoch, row, 0), ...change]),
    );
    return { memoryObject: objectMessage(after, type) };
  };
  return mutex(request.pathId, () => retryOnConflict(context.signal, round));
}
