import type { UpdateMemoryTypeRequest, UpdateMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { canonicalJson } from 'platform/core/canonical-json.ts';
import { changeOps } from '../events.ts';
import { refuseIfMatch, requireMembers } from '../conditions.ts';
import type { Deps } from '../deps.ts';
import { countOf } from './fences.ts';
import type { Visibility } from './visibility.ts';
import { requireType } from './find.ts';
import { typeMessage } from './message.ts';
import { requireFreeName } from './names.ts';
import { checkFields, foldType, refuseLaterMembers, type MemoryTypeFields } from './rules.ts';
import { soundSchema } from './schema.ts';
import type { MemoryTypeRecord } from './store.ts';

type Used = Pick<Deps, 'types' | 'fences' | 'usage' | 'clock' | 'config' | 'mutex' | 'schedule'>;

export async function updateMemoryType(
  deps: Used,
  request: UpdateMemoryTypeRequest,
  context: CallContext,
): Promise<UpdateMemoryTypeResponse> {
  refuseIfMatch(request);
  const fields = fieldsOf(request);
  refuseLaterMembers(request);
  checkFields(fields);
  if (fields.jsonSchema !== undefined)
    await soundSchema(
      deps.schedule,
      organizationOfCall(context),
      fields.jsonSchema,
      deps.config.MEMORY_SCHEMA_MAX_BYTES,
    );
  const record = await deps.mutex(request.pathId, () =>
    retryOnConflict(context.signal, () => round(deps, request, fields, context)),
  );
  return { memoryType: typeMessage(record) };
}

async function round(
  { types, fences, usage, clock, config }: Used,
  { pathId, id }: UpdateMemoryTypeRequest,
  fields: Partial<MemoryTypeFields>,
  context: CallContext,
): Promise<MemoryTypeRecord> {
  const before = await requireType(types, context, pathId);
  if (id !== undefined && id.toLowerCase() !== before._id) throw invalid('/id', 'id must be that of the memory type');
  if (Object.keys(fields).length === 0) return before;

  const after = changed(before, fields, isoTime(clock.now()));
  const { _id, organizationId, type, typeLower, version, revision, updatedAt } = after;
  if (typeLower !== before.typeLower) await requireFreeName(types, context.principal, organizationId, type);
  const present = await fences.find(organizationId, { typeId: _id });
  const count = countOf(present);
  if (version !== before.version && count > 0) throw new ServiceError('SCHEMA_IN_USE', undefined, { facts: { count } });

  const growth = Buffer.byteLength(after.jsonSchema) - Buffer.byteLength(before.jsonSchema);
  const resized =
    growth === 0 ? [] : [await usage.resizeSchema(organizationId, growth, config.MEMORY_SCHEMAS_MAX_BYTES)];
  const change = changeOps(context, {
    noun: 'type',
    verb: 'update',
    id: _id,
    revision,
    time: updatedAt,
    names: { type, version },
  });
  await types.replace(before, after, present, [...resized, ...change]);
  return after;
}

/** The fields that the mask names. */
function fieldsOf(request: UpdateMemoryTypeRequest): Partial<MemoryTypeFields> {
  const mask = requireMembers(request);
  const { type, displayName, description, visibility, jsonSchema } = request;
  const given = Object.entries({ type, displayName, description, visibility, jsonSchema }).filter(
    ([name, value]) => mask.includes(name) && value !== undefined,
  );
  return Object.fromEntries(given);
}

function changed(before: MemoryTypeRecord, fields: Partial<MemoryTypeFields>, updatedAt: string): MemoryTypeRecord {
  const after = { ...before, ...fields, revision: before.revision + 1, updatedAt } as MemoryTypeRecord & {
    visibility: Visibility;
  };
  const raised = sameJson(before.jsonSchema, after.jsonSchema) ? 0 : 1;
  return { ...after, typeLower: foldType(after.type), version: before.version + raised, epoch: before.epoch + raised };
}

const sameJson = (a: string, b: string): boolean =>
  a === b || canonicalJson(JSON.parse(a)) === canonicalJson(JSON.parse(b));
