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
import { memoryTypeMessage, memoryTypeTag } from './message.ts';
import {
  audienceOf,
  checkFields,
  foldTypeName,
  rejectUnsupportedMembers,
  typeBytes,
  type Visibility,
} from './rules.ts';
import { requireFreeName, type MemoryTypeRecord } from './store.ts';

export async function createMemoryType(
  deps: Pick<Deps, 'types' | 'usage' | 'config' | 'schedule' | 'schemas' | 'mutex'>,
  request: CreateMemoryTypeRequest,
  context: CallContext,
): Promise<CreateMemoryTypeResponse> {
  const { types, usage, config, schedule, schemas, mutex } = deps;
  const organizationId = organizationOfCall(context);
  rejectUnsupportedMembers(request);
  checkFields(request);
  const { type, displayName, description = '', groupNames } = request;
  const visibility = (request.visibility ?? 'organization') as Visibility;
  if (type === undefined) throw invalid('/type', 'type is required');
  const { text: jsonSchema } = await schedule(organizationId, () =>
    readJsonObject('jsonSchema', request.jsonSchema, config.MEMORY_SCHEMA_MAX_BYTES),
  );

  const definition = { jsonSchema, ...definitionTexts(request), relations: '[]' };

  const id = newId();
  const createdAt = isoTime(timeOfId(id));
  const texts = { type, displayName: displayName ?? type, description, groupNames, ...definition };
  const bytes = typeBytes(texts);
  const record: MemoryTypeRecord = {
    _id: id,
    organizationId,
    ...texts,
    typeLower: foldTypeName(type),
    visibility,
    audience: audienceOf({ visibility, groupNames }),
    version: 1,
    state: 'active',
    epoch: 1,
    revision: 1,
    bytes,
    createdAt,
    updatedAt: createdAt,
  };
  const events = changeEvents(context, {
    eventType: 'memory.type.created.v1',
    id,
    revision: 1,
    time: createdAt,
    names: { type, version: 1 },
  });
  const attempt = async (): Promise<void> => {
    await requireFreeName(types, context.principal, organizationId, type);
    const counted = await usage.addType(
      organizationId,
      context.principal,
      { schemaBytes: Buffer.byteLength(jsonSchema), bytes },
      config.MEMORY_SCHEMAS_MAX_BYTES,
    );
    await schedule(organizationId, () => checkAuthoredSchema(schemas, organizationId, jsonSchema));
    await types.create(record, [...counted, ...events]);
  };
  // All types of an organization are counted in one record, so concurrent creations would only abort each other.
  await mutex(organizationId, 'types', () => retryOnConflict(context.signal, attempt));
  return {
    memoryType: memoryTypeMessage(record),
    outcome: 'CREATED',
    location: `/api/memory/types/${id}`,
    etag: memoryTypeTag(record),
  };
}
