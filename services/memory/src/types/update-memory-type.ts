import type { UpdateMemoryTypeRequest, UpdateMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { isAdmin } from 'platform/core/principal.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { carryOutForAWhile, startChange } from '../changes/start-change.ts';
import { dryRunReport } from '../changes/message.ts';
import { examplesOf, type TypeChangeRecord } from '../changes/store.ts';
import { requireWithChange } from '../changes/type-with-change.ts';
import { changeEvents } from '../events.ts';
import type { Deps } from '../deps.ts';
import { readJsonObject, requireUpdateMask } from '../request-members.ts';
import { checkAuthoredSchema } from './authored-schema.ts';
import { changedMembers, definitionTexts } from './definition.ts';
import { requireSeparator } from './id-schema.ts';
import { objectCountOf } from './fences.ts';
import { memoryTypeMessage, memoryTypeTag, requireTypeMatch } from './message.ts';
import { relationNames } from './relation-names.ts';
import {
  expectTargets,
  inTurnOfTypes,
  releaseTargets,
  requireSeenByDependents,
  targetsSeenBy,
} from './relation-ops.ts';
import { checkRelations, checkSetNull, otherTargets, relationsOf, storedRelations } from './relations.ts';
import {
  audienceOf,
  checkFields,
  foldTypeName,
  requireActive,
  typeBytes,
  type MemoryTypeFields,
  type Visibility,
} from './rules.ts';
import { auditedFields, requireFreeName, requireType, type MemoryTypeRecord } from './store.ts';

type Needs = Parameters<typeof startChange>[0] & Pick<Deps, 'mutex'>;

export async function updateMemoryType(
  deps: Needs,
  request: UpdateMemoryTypeRequest,
  context: CallContext,
): Promise<UpdateMemoryTypeResponse> {
  if (request.force && !isAdmin(context.principal)) throw new ServiceError('ADMIN_REQUIRED');
  const fields = fieldsOf(request);
  checkRelations(request.relations);
  checkFields(fields);
  const organizationId = organizationOfCall(context);
  if (fields.jsonSchema !== undefined)
    await deps.schedule(organizationId, () =>
      readJsonObject('jsonSchema', fields.jsonSchema, deps.config.MEMORY_SCHEMA_MAX_BYTES),
    );
  const change = () => retryOnConflict(context.signal, () => attempt(deps, request, fields, context));
  const writesTargets = WRITE_TARGETS.some((name) => request.updateMask!.includes(name));
  const { type, lastChange, started, version } = await deps.mutex(organizationId, request.pathId.toLowerCase(), () =>
    writesTargets ? inTurnOfTypes(deps.mutex, organizationId, change) : change(),
  );
  if (!started) return answer(deps, type, lastChange);
  const ended = await carryOutForAWhile(deps, context, started);
  if (ended.state !== 'running') requireDone(ended);
  if (ended.action === 'dryRun' && ended.state === 'done') return { ...NOTHING, report: dryRunReport(ended, version) };
  // who hides a type from himself is told what he has made of it
  const hides = fields.visibility !== undefined || fields.groupNames !== undefined;
  const present = await requireWithChange(deps, context, type._id, hides ? {} : undefined);
  return {
    ...(await answer(deps, present.type, present.change)),
    outcome: ended.state === 'running' ? 'ACCEPTED' : 'DONE',
  };
}

/** Members whose change also writes the types that the relations point to. */
const WRITE_TARGETS = ['relations', 'visibility', 'groupNames'];
const NOTHING: UpdateMemoryTypeResponse = {
  memoryType: undefined,
  etag: undefined,
  outcome: 'DONE',
  report: undefined,
};
const answer = async (
  deps: Needs,
  type: MemoryTypeRecord,
  change: TypeChangeRecord | undefined,
): Promise<UpdateMemoryTypeResponse> => {
  const names = await relationNames(deps, [type]);
  return {
    ...NOTHING,
    memoryType: memoryTypeMessage(type, change, names),
    etag: memoryTypeTag(type, change, names),
  };
};

/** @throws ServiceError SCHEMA_INCOMPATIBLE with the report; ALREADY_EXISTS, CONFLICT */
function requireDone(change: TypeChangeRecord): void {
  const { state, incompatible } = change;
  if (state === 'done') return;
  if (state === 'cancelled')
    throw new ServiceError('CONFLICT', 'The change was cancelled, or other work took its place');
  if (incompatible === 0) throw new ServiceError('ALREADY_EXISTS', 'A memory type of this name exists');
  throw new ServiceError('SCHEMA_INCOMPATIBLE', undefined, {
    facts: { count: incompatible, examples: examplesOf(change) },
  });
}

interface Attempt {
  /** As it is now. */
  type: MemoryTypeRecord;
  lastChange?: TypeChangeRecord | undefined;
  /** The work that makes the change, or tries it. */
  started?: TypeChangeRecord;
  /** That the type has or would have after the change. */
  version: number;
}

/** Reads, checks, and writes the type, or announces its change when its objects must be read first. */
async function attempt(
  deps: Needs,
  request: UpdateMemoryTypeRequest,
  fields: Partial<MemoryTypeFields>,
  context: CallContext,
): Promise<Attempt> {
  const { types, fences, usage, changes, clock, config, schedule, schemas } = deps;
  const { pathId, id, dryRun = false, force = false } = request;
  const before = await requireType(types, context, pathId);
  const { _id, organizationId } = before;
  const lastChange = await changes.byType(organizationId, _id);
  requireTypeMatch(request, before, await relationNames(deps, [before]));
  if (id !== undefined && id.toLowerCase() !== _id) throw invalid('/id', 'id must be that of the memory type');
  requireActive(before);
  const setsRelations = request.updateMask!.includes('relations');
  if (Object.keys(fields).length === 0 && !setsRelations && !dryRun)
    return { type: before, lastChange, version: before.version };

  const audience = audienceOf({ ...before, ...(fields as Partial<MemoryTypeRecord>) });
  const isSeenByOthers = audience.join() !== before.audience.join();
  if (isSeenByOthers) await requireSeenByDependents(types, before, audience);
  const named = { _id, organizationId, audience, typeLower: foldTypeName(fields.type ?? before.type) };
  const present = { relations: relationsOf(before), typeLower: before.typeLower };
  const { stored, targets } = setsRelations
    ? await storedRelations(types, context.principal, named, request.relations, present)
    : { stored: present.relations, targets: isSeenByOthers ? await targetsSeenBy(types, before, audience) : [] };
  const given = { ...fields, ...(setsRelations && { relations: JSON.stringify(stored) }) };
  const after = await schedule(organizationId, () => withFields(before, given, isoTime(clock.now())));
  const { type, typeLower, version, epoch, revision, updatedAt } = after;
  if (request.idSchema && after.idSchema !== before.idSchema) requireSeparator(request.idSchema);
  if (typeLower !== before.typeLower) await requireFreeName(types, context.principal, organizationId, type);
  const typeFences = await fences.ofType(organizationId, _id);
  const of = objectCountOf(typeFences);

  const growth = {
    schemaBytes: Buffer.byteLength(after.jsonSchema) - Buffer.byteLength(before.jsonSchema),
    bytes: after.bytes - (before.bytes ?? 0),
    grown: after.bytes > typeBytes(before),
  };
  const resized = await usage.resizeType(organizationId, context.principal, growth, config.MEMORY_SCHEMAS_MAX_BYTES);
  if (after.jsonSchema !== before.jsonSchema && version !== before.version)
    await schedule(organizationId, () => checkAuthoredSchema(schemas, organizationId, after.jsonSchema));
  if (version !== before.version) await schedule(organizationId, () => checkSetNull(schemas, after));
  const counted = [...resized, ...expectTargets(targets, before.relationTargets ?? [])];
  if (dryRun)
    return {
      type: before,
      started: await startChange(deps, context, { action: 'dryRun', before, after, of }),
      version,
    };
  if (epoch !== before.epoch && of > 0) {
    const work = { action: 'update', before, after, force, of, ops: counted } as const;
    return { type: before, started: await startChange(deps, context, work), version };
  }
  const events = changeEvents(context, {
    eventType: 'memory.type.updated.v1',
    id: _id,
    revision,
    time: updatedAt,
    names: { type, version },
    changes: changesOf(auditedFields(before), auditedFields(after)),
  });
  const released = releaseTargets((before.relationTargets ?? []).filter((id) => !after.relationTargets!.includes(id)));
  await types.change(before, after, typeFences, [...counted, ...released, ...events]);
  return { type: after, lastChange, version };
}

/** The fields that the update mask names. @throws ServiceError INVALID_REQUEST when the mask is empty */
function fieldsOf(request: UpdateMemoryTypeRequest): Partial<MemoryTypeFields> {
  const mask = requireUpdateMask(request);
  const { type, displayName, description, visibility, groupNames, jsonSchema } = request;
  const texts = { type, displayName, description, visibility, groupNames, jsonSchema, ...definitionTexts(request) };
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
    audience: audienceOf(after),
    relationTargets: otherTargets(after._id, relationsOf(after)),
    version: before.version + (changed.length > 0 ? 1 : 0),
    epoch: before.epoch + (changed.some((name) => name !== 'embeddingSchema') ? 1 : 0),
    bytes: typeBytes(after),
  };
}
