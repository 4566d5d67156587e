import type { UpdateMemoryObjectRequest, UpdateMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { changeEvents } from '../events.ts';
import type { Deps } from '../deps.ts';
import { readJsonObject, requireMatch, requireUpdateMask } from '../request-members.ts';
import { requireType } from '../types/store.ts';
import { memoryObjectMessage, memoryObjectTag } from './message.ts';
import { checkContent, nameInTag, objectBytes, requireSameIdentity } from './rules.ts';
import { requireObject, type MemoryObjectRecord } from './store.ts';

type Needs = Pick<
  Deps,
  'types' | 'objects' | 'fences' | 'usage' | 'counterShards' | 'clock' | 'config' | 'mutex' | 'schedule' | 'schemas'
>;

export async function updateMemoryObject(
  deps: Needs,
  request: UpdateMemoryObjectRequest,
  context: CallContext,
): Promise<UpdateMemoryObjectResponse> {
  const { types, objects, fences, usage, counterShards, clock, config, mutex, schedule, schemas } = deps;
  const organizationId = organizationOfCall(context);
  const content = requireUpdateMask(request).includes('content')
    ? await schedule(organizationId, () => readJsonObject('content', request.content, config.MEMORY_CONTENT_MAX_BYTES))
    : undefined;

  const attempt = async (): Promise<UpdateMemoryObjectResponse> => {
    const { object, fence } = await requireObject(deps, context, request.pathId);
    requireMatch(request, memoryObjectTag(object, fence.type));
    const { _id: id, typeId, key } = object;
    requireSameIdentity(request, { id, typeId, type: fence.type, key });
    if (content === undefined) return answer(object, fence.type);

    const { type, version, epoch, jsonSchema } = await requireType(types, context, typeId);
    const bytes = objectBytes({ content: content.text, key });
    const change = { bytes: bytes - (object.bytes ?? 0) };
    const count =
      bytes > objectBytes(object)
        ? await usage.roomToGrow(organizationId, context.principal, change)
        : (shard: number) => usage.shrink(organizationId, shard, change);
    await schedule(organizationId, () => checkContent(schemas.compile(organizationId, jsonSchema), content.value));
    const after = {
      ...object,
      content: content.text,
      schemaVersion: version,
      revision: object.revision + 1,
      bytes,
      updatedAt: isoTime(clock.now()),
    };
    const events = changeEvents(context, {
      eventType: 'memory.object.updated.v1',
      id,
      revision: after.revision,
      time: after.updatedAt,
      names: { typeId, type, key },
    });
    await counterShards.withShard(organizationId, context.signal, (shard) =>
      objects.change(object, after, [
        fences.expectEpoch(typeId, epoch, shard, 0, nameInTag(request, fence)),
        ...count(shard),
        ...events,
      ]),
    );
    return answer(after, type);
  };
  return mutex(organizationId, request.pathId.toLowerCase(), () => retryOnConflict(context.signal, attempt));
}

const answer = (object: MemoryObjectRecord, type: string): UpdateMemoryObjectResponse => ({
  memoryObject: memoryObjectMessage(object, type),
  etag: memoryObjectTag(object, type),
});
