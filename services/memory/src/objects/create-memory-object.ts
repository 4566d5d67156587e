import type { CreateMemoryObjectRequest, CreateMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { isUuid, newId, timeOfId } from 'platform/core/ids.ts';
import { changeEvents } from '../events.ts';
import type { Deps } from '../deps.ts';
import { readJsonObject } from '../request-members.ts';
import { foldTypeName, visibleTo } from '../types/rules.ts';
import type { MemoryTypeRecord, MemoryTypes } from '../types/store.ts';
import { memoryObjectMessage, memoryObjectTag } from './message.ts';
import { checkContent, objectBytes, requireKey } from './rules.ts';
import type { MemoryObjectRecord } from './store.ts';

type Needs = Pick<Deps, 'types' | 'objects' | 'fences' | 'usage' | 'counterShards' | 'config' | 'schedule' | 'schemas'>;

export async function createMemoryObject(
  { types, objects, fences, usage, counterShards, config, schedule, schemas }: Needs,
  request: CreateMemoryObjectRequest,
  context: CallContext,
): Promise<CreateMemoryObjectResponse> {
  const organizationId = organizationOfCall(context);
  requireTypeReference(request);
  const key = requireKey(request.key, config.MEMORY_KEY_MAX_LENGTH);
  const content = await schedule(organizationId, () =>
    readJsonObject('content', request.content, config.MEMORY_CONTENT_MAX_BYTES),
  );

  const id = newId();
  const createdAt = isoTime(timeOfId(id));
  const attempt = async (): Promise<{ record: MemoryObjectRecord; type: string }> => {
    const memoryType = await findType(types, request, context);
    const { _id: typeId, type, version, epoch, jsonSchema } = memoryType;
    const bytes = objectBytes({ content: content.text, key });
    const count = await usage.roomToGrow(organizationId, context.principal, { objects: 1, bytes });
    await schedule(organizationId, () => checkContent(schemas.compile(organizationId, jsonSchema), content.value));
    const record = {
      _id: id,
      organizationId,
      typeId,
      key,
      content: content.text,
      schemaVersion: version,
      revision: 1,
      bytes,
      createdAt,
      updatedAt: createdAt,
    };
    const events = changeEvents(context, {
      eventType: 'memory.object.created.v1',
      id,
      revision: 1,
      time: createdAt,
      names: { typeId, type, key },
    });
    await counterShards.withShard(organizationId, context.signal, (shard) =>
      objects.create(record, [fences.expectEpoch(typeId, epoch, shard, 1), ...count(shard), ...events]),
    );
    return { record, type };
  };
  const { record, type } = await retryOnConflict(context.signal, attempt);
  return {
    memoryObject: memoryObjectMessage(record, type),
    outcome: 'CREATED',
    location: `/api/memory/objects/${id}`,
    etag: memoryObjectTag(record, type),
  };
}

/** @throws ServiceError INVALID_REQUEST unless the request refers to a type by a UUID or a name */
function requireTypeReference({ typeId, type }: CreateMemoryObjectRequest): void {
  if (typeId === undefined && type === undefined) throw invalid('/typeId', 'typeId or type is required');
  if (typeId !== undefined && !isUuid(typeId)) throw invalid('/typeId', 'typeId must be a UUID');
}

/** @throws ServiceError NOT_FOUND; INVALID_REQUEST when typeId and type refer to different types */
async function findType(
  types: MemoryTypes,
  { typeId, type }: CreateMemoryObjectRequest,
  { principal }: CallContext,
): Promise<MemoryTypeRecord> {
  const { organizationId } = principal;
  const visible = visibleTo(principal);
  const found =
    typeId === undefined
      ? await types.byName(organizationId, type!, visible)
      : await types.byId(organizationId, typeId.toLowerCase(), visible);
  if (!found) throw new ServiceError('NOT_FOUND', 'Memory type not found');
  if (type !== undefined && foldTypeName(type) !== found.typeLower)
    throw invalid('/type', 'type and typeId name different memory types');
  return found;
}
