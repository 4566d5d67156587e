import type { UpdateMemoryTypeRequest, UpdateMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { changeEvents } from '../events.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import type { Deps } from '../deps.ts';
import { readJsonObject, requireMatch, requireUpdateMask } from '../request-members.ts';
import { objectCountOf } from './fences.ts';
import { checkAuthoredSchema } from './authored-schema.ts';
import { changedMembers, definitionTexts } from './definition.ts';
import { memoryTypeMessage, memoryTypeTag } from './message.ts';
import {
  checkFields,
  foldTypeName,
  rejectUnsupportedMembers,
  typeBytes,
  type MemoryTypeFields,
  type Visibility,
} from './rules.ts';
import { requireFreeName, requireType, type MemoryTypeRecord } from './store.ts';

type Needs = Pick<Deps, 'types' | 'fences' | 'usage' | 'clock' | 'config' | 'mutex' | 'schedule' | 'schemas'>;

export async function updateMemoryType(
  deps: Needs,
  request: UpdateMemoryTypeRequest,
  context: CallContext,
): Promise<UpdateMemoryTypeResponse> {
  const fields = fieldsOf(request);
  rejectUnsupportedMembers(request);
  checkFields(fields);
  const organizationId = organizationOfCall(context);
  if (fields.jsonSchema !== undefined)
    await deps.schedule(organizationId, () =>
      readJsonObject('jsonSchema', fields.jsonSchema, deps.config.MEMORY_SCHEMA_MAX_BYTES),
    );
  const record = await deps.mutex(organizationId, request.pathId.toLowerCase(), () =>
    retryOnConflict(context.signal, () => attempt(deps, request, fields, context)),
  );
  return { memoryType: memoryTypeMessage(record), etag: memoryTypeTag(record) };
}

/** Reads, checks and writes once. Resolves to the type as it is afterwards. */
async function attempt(
  { types, fences, usage, clock, config, schedule, schemas }: Needs,
  request: UpdateMemoryTypeRequest,
  fields: Partial<MemoryTypeFields>,
  context: CallContext,
): Promise<MemoryTypeRecord> {
  const { pathId, id } = request;
  const before = await requireType(types, context, pathId);
  requireMatch(request, memoryTypeTag(before));
  if (id !== undefined && id.toLowerCase() !== before._id) throw invalid('/id', 'id must be that of the memory type');
  if (Object.keys(fields).length === 0) return before;

  const { organizationId } = before;
  const after = await schedule(organizationId, () => withFields(before, fields, isoTime(clock.now())));
  const { _id, type, typeLower, version, epoch, revision, updatedAt } = after;
  if (typeLower !== before.typeLower) await requireFreeName(types, context.principal, organizationId, type);
  const typeFences = await fences.find(organizationId, { typeId: _id });
  const count = objectCountOf(typeFences);
  if (epoch !== before.epoch && count > 0) throw new ServiceError('SCHEMA_IN_USE', undefined, { facts: { count } });

  const growth = {
    schemaBytes: Buffer.byteLength(after.jsonSchema) - Buffer.byteLength(before.jsonSchema),
    bytes: after.bytes - (before.bytes ?? 0),
    grown: after.bytes > typeBytes(before),
  };
  const resized = await usage.resizeType(organizationId, context.principal, growth, config.MEMORY_SCHEMAS_MAX_BYTES);
  if (after.jsonSchema !== before.jsonSchema && version !== before.version)
    await schedule(organizationId, () => checkAuthoredSchema(schemas, organizationId, after.jsonSchema));
  const events = changeEvents(context, {
    eventType: 'memory.type.updated.v1',
    id: _id,
    revision,
    time: updatedAt,
    names: { type, version },
    changes: changesOf(namesOf(before), namesOf(after)),
  });
  await types.change(before, after, typeFences, [...resized, ...events]);
  return after;
}

/** What an audit entry may say of a type: no content, such as its schema. */
const namesOf = ({ type, displayName, visibility, version }: MemoryTypeRecord) => ({
  ...{ type, displayName, visibility, version },
});

/** The fields that the update mask names. @throws ServiceError INVALID_REQUEST when the mask is empty */
function fieldsOf(request: UpdateMemoryTypeRequest): Partial<MemoryTypeFields> {
  const mask = requireUpdateMask(request);
  const { type, displayName, description, visibility, jsonSchema } = request;
  const texts = { type, displayName, description, visibility, jsonSchema, ...definitionTexts(request) };
  const given = Object.entries(texts).filter(([name, value]) => mask.includes(name) && value !== undefined);
  return Object.fromEntries(given);
}

/**
 * The type with the fields set. A definition of other JSON values raises the version, and the epoch unless objects need
 * not obey what changed. Comparing the values may take long: call it through the fair scheduler.
 */
function withFields(
  before: MemoryTypeRecord,
  fields: Partial<MemoryTypeFields>,
  updatedAt: string,
): MemoryTypeRecord & { bytes: number } {
  const after = { ...before, ...fields, revision: before.revision + 1, updatedAt } as MemoryTypeRecord & {
    visibility: Visibility;
  };
  const changed = changedMembers(before, after);
  return {
    ...after,
    typeLower: foldTypeName(after.type),
    version: before.version + (changed.length > 0 ? 1 : 0),
    epoch: before.epoch + (changed.some((name) => name !== 'embeddingSchema') ? 1 : 0),
    bytes: typeBytes(after),
  };
}
