import type { CreateMemoryObjectRequest, CreateMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { isUuid, newId, timeOfId } from 'platform/core/ids.ts';
import { DuplicateKeyError } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { readJsonObject } from '../request-members.ts';
import { foldTypeName, visibleTo } from '../types/rules.ts';
import type { MemoryTypeRecord, MemoryTypes } from '../types/store.ts';
import { checkContent, derivedKey, keyHolder } from './content.ts';
import { memoryObjectMessage, memoryObjectTag } from './message.ts';
import { objectBytes, requireKey } from './rules.ts';
import type { MemoryObjectRecord } from './store.ts';
import { liveRelations, requireReferences } from '../references/plan-references.ts';
import { writeObjects } from './write-objects.ts';

type Needs = Pick<
  Deps,
  'types' | 'objects' | 'groupedWrites' | 'references' | 'usage' | 'clock' | 'config' | 'mutex' | 'schedule' | 'schemas'
>;

export async function createMemoryObject(
  deps: Needs,
  request: CreateMemoryObjectRequest,
  context: CallContext,
): Promise<CreateMemoryObjectResponse> {
  const { types, objects, clock, config, mutex, schedule, schemas } = deps;
  const organizationId = organizationOfCall(context);
  requireTypeReference(request);
  if (request.key !== undefined) requireKey(request.key, config.MEMORY_KEY_MAX_LENGTH);
  const content = await schedule(organizationId, () =>
    readJsonObject('content', request.content, config.MEMORY_CONTENT_MAX_BYTES),
  );

  const id = newId();
  const createdAt = isoTime(timeOfId(id));
  const attempt = async (): Promise<CreateMemoryObjectResponse> => {
    const memoryType = await findType(types, request, context);
    const { _id: typeId, type, version, epoch } = memoryType;
    const derived = await schedule(organizationId, () => derivedKey(schemas, memoryType, content.value));
    const key = requireKey(keyOf(request.key, derived), config.MEMORY_KEY_MAX_LENGTH);
    const check = () => schedule(organizationId, () => checkContent(schemas, memoryType, content.value, key));
    const stored = {
      content: content.text,
      schemaVersion: version,
      bytes: objectBytes({ content: content.text, key }),
    };

    const write = async (before?: MemoryObjectRecord): Promise<CreateMemoryObjectResponse> => {
      const after: MemoryObjectRecord = before
        ? { ...before, ...stored, revision: before.revision + 1, updatedAt: isoTime(clock.now()) }
        : { _id: id, organizationId, typeId, key, ...stored, revision: 1, createdAt, updatedAt: createdAt };
      // A missing target is named only in a content that is valid otherwise.
      const hasReferences = liveRelations(memoryType).length > 0;
      if (hasReferences) await check();
      const references = await requireReferences(deps, memoryType, after, content.value);
      const writes = [{ before, after, time: after.updatedAt, type: { name: type, epoch }, references }];
      await writeObjects(deps, context, writes, hasReferences ? {} : { check });
      return {
        memoryObject: memoryObjectMessage(after, type),
        outcome: before ? 'REPLACED' : 'CREATED',
        location: before ? '' : `/api/memory/objects/${id}`,
        etag: memoryObjectTag(after, type),
      };
    };
    if (request.upsert)
      return mutex(organizationId, `${typeId}/${key}`, async () => {
        const before = await objects.byKey(organizationId, typeId, key);
        const isOther =
          before && (await schedule(organizationId, () => keyHolder(memoryType, before, content.value) !== 'same'));
        if (isOther) throw keyIsTaken(before, OTHER_VALUES);
        return write(before);
      });
    return write().catch(async (error: unknown) => {
      const taken = error instanceof DuplicateKeyError && (await objects.byKey(organizationId, typeId, key));
      throw taken ? keyIsTaken(taken) : error;
    });
  };
  return retryOnConflict(context.signal, attempt);
}

const OTHER_VALUES = 'The memory type has an object whose key is the same, made of other values by the idSchema';
const keyIsTaken = (
  { _id: id }: MemoryObjectRecord,
  message = 'The memory type has an object with this key',
): ServiceError => new ServiceError('ALREADY_EXISTS', message, { facts: { id } });

/** The key in the request, or the one that the idSchema derives. @throws ServiceError INVALID_REQUEST if they differ */
function keyOf(given: string | undefined, derived: string | undefined): string | undefined {
  if (derived === undefined || given === undefined || given === derived) return derived ?? given;
  throw invalid('/key', 'key must be absent, or be what the idSchema of the type makes of the content');
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
