import type { CreateMemoryObjectRequest, CreateMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { isUuid, newId, timeOfId } from 'platform/core/ids.ts';
import { changeOps } from '../events.ts';
import type { Deps } from '../deps.ts';
import { readObject } from '../json-object.ts';
import { foldType } from '../types/rules.ts';
import type { MemoryTypeRecord, TypeStore } from '../types/store.ts';
import { visibleTo } from '../types/visibility.ts';
import { requireValidContent } from './content.ts';
import { objectMessage } from './message.ts';
import { checkKey } from './rules.ts';
import type { MemoryObjectRecord } from './store.ts';

type Used = Pick<Deps, 'types' | 'objects' | 'fences' | 'usage' | 'counterShards' | 'config' | 'schedule'>;

export async function createMemoryObject(
  { types, objects, fences, usage, counterShards, config, schedule }: Used,
  request: CreateMemoryObjectRequest,
  context: CallContext,
): Promise<CreateMemoryObjectResponse> {
  const organizationId = organizationOfCall(context);
  requireTypeNamed(request);
  const key = checkKey(request.key, config.MEMORY_KEY_MAX_LENGTH);
  const content = readObject('content', request.content, config.MEMORY_CONTENT_MAX_BYTES);

  const id = newId();
  const createdAt = isoTime(timeOfId(id));
  const round = async (): Promise<{ record: MemoryObjectRecord; type: string }> => {
    const found = await typeOf(types, request, context);
    await requireValidContent(schedule, found, content);
    const { _id: typeId, type, version, epoch } = found;
    const record = {
      _id: id,
      organizationId,
      typeId,
      key,
      content: request.content!,
      schemaVersion: version,
      revision: 1,
      createdAt,
      updatedAt: createdAt,
    };
    const change = changeOps(context, {
      noun: 'object',
      verb: 'create',
      id,
      revision: 1,
      time: createdAt,
      names: { typeId, type, key },
    });
    await counterShards.take(organizationId, context.signal, async (row) => {
      const counted = await usage.addObject(organizationId, context.principal, row);
      await objects.create(record, [fences.move(typeId, epoch, row, 1), counted, ...change]);
    });
    return { record, type };
  };
  const { record, type } = await retryOnConflict(context.signal, round);
  return { memoryObject: objectMessage(record, type), outcome: 'CREATED', location: `/api/memory/objects/${id}` };
}

function requireTypeNamed({ typeId, type }: CreateMemoryObjectRequest): void {
  if (typeId === undefined && type === undefined) throw invalid('/typeId', 'typeId or type is required');
  if (typeId !== undefined && !isUuid(typeId)) throw invalid('/typeId', 'typeId must be a UUID');
}

async function typeOf(
  types: TypeStore,
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
  if (type !== undefined && foldType(type) !== found.typeLower)
    throw invalid('/type', 'type and typeId name different memory types');
  return found;
}
