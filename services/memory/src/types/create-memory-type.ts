import type { CreateMemoryTypeRequest, CreateMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { invalid } from 'platform/core/errors.ts';
import { newId, timeOfId } from 'platform/core/ids.ts';
import { changeEvents } from '../events.ts';
import type { Deps } from '../deps.ts';
import { readJsonObject } from '../request-members.ts';
import { checkAuthoredSchema } from './authored-schema.ts';
import { definitionTexts } from './definition.ts';
import { requireSeparator } from './id-schema.ts';
import { relationNames } from './relation-names.ts';
import { expectTargets, inTurnOfTypes } from './relation-ops.ts';
import { checkRelations, checkSetNull, otherTargets, storedRelations } from './relations.ts';
import { memoryTypeMessage, memoryTypeTag } from './message.ts';
import { audienceOf, checkFields, foldTypeName, typeBytes, type Visibility } from './rules.ts';
import { requireFreeName, type MemoryTypeRecord } from './store.ts';

export async function createMemoryType(
  deps: Pick<Deps, 'types' | 'usage' | 'config' | 'schedule' | 'schemas' | 'mutex'>,
  request: CreateMemoryTypeRequest,
  context: CallContext,
): Promise<CreateMemoryTypeResponse> {
  const { types, usage, config, schedule, schemas, mutex } = deps;
  const organizationId = organizationOfCall(context);
  checkRelations(request.relations);
  checkFields(request);
  if (request.idSchema) requireSeparator(request.idSchema);
  const { type, displayName, description = '', groupNames } = request;
  const visibility = (request.visibility ?? 'organization') as Visibility;
  if (type === undefined) throw invalid('/type', 'type is required');
  const { text: jsonSchema } = await schedule(organizationId, () =>
    readJsonObject('jsonSchema', request.jsonSchema, config.MEMORY_SCHEMA_MAX_BYTES),
  );

  const texts = {
    ...{ type, displayName: displayName ?? type, description, groupNames, jsonSchema },
    ...definitionTexts(request),
  };
  const id = newId();
  const createdAt = isoTime(timeOfId(id));
  const named = {
    ...{ _id: id, organizationId, typeLower: foldTypeName(type) },
    audience: audienceOf({ visibility, groupNames }),
  };
  const events = changeEvents(context, {
    eventType: 'memory.type.created.v1',
    id,
    revision: 1,
    time: createdAt,
    names: { type, version: 1 },
  });
  const attempt = async (): Promise<MemoryTypeRecord> => {
    await requireFreeName(types, context.principal, organizationId, type);
    const { stored, targets } = await storedRelations(types, context.principal, named, request.relations, {
      relations: [],
    });
    const relations = JSON.stringify(stored);
    const bytes = typeBytes({ ...texts, relations });
    const record: MemoryTypeRecord = {
      ...named,
      ...texts,
      visibility,
      version: 1,
      relations,
      relationTargets: otherTargets(id, stored),
      state: 'active',
      epoch: 1,
      revision: 1,
      bytes,
      createdAt,
      updatedAt: createdAt,
    };
    const counted = await usage.addType(
      organizationId,
      context.principal,
      { schemaBytes: Buffer.byteLength(jsonSchema), bytes },
      config.MEMORY_SCHEMAS_MAX_BYTES,
    );
    await schedule(organizationId, () => checkAuthoredSchema(schemas, organizationId, jsonSchema));
    await schedule(organizationId, () => checkSetNull(schemas, record));
    await types.create(record, [...counted, ...expectTargets(targets, []), ...events]);
    return record;
  };
  // All types of an organization are counted in one record, so concurrent creations would only abort each other.
  const record = await inTurnOfTypes(mutex, organizationId, () => retryOnConflict(context.signal, attempt));
  const names = await relationNames({ types }, [record]);
  return {
    memoryType: memoryTypeMessage(record, undefined, names),
    outcome: 'CREATED',
    location: `/api/memory/types/${id}`,
    etag: memoryTypeTag(record, undefined, names),
  };
}
