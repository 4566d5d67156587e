import { parseJson } from 'platform/core/parse-json.ts';
import { isoTime } from 'platform/core/clock.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { update, type Op } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { changeEvents } from '../events.ts';
import { typeBytes } from '../types/rules.ts';
import { releaseTargets } from '../types/relation-ops.ts';
import { otherTargets, relationsOf } from '../types/relations.ts';
import { asRead, auditedFields, TYPES, type MemoryTypeRecord } from '../types/store.ts';
import { principalOf, progressOp, withProgress, type NextType, type TypeChangeRecord } from './store.ts';

type Needs = Pick<Deps, 'types' | 'fences' | 'usage' | 'changes' | 'clock'>;
type End = Exclude<TypeChangeRecord['state'], 'running'>;

/** The record at its end, and what the last batch writes of it. */
export function endOps(
  { clock }: Pick<Needs, 'clock'>,
  change: TypeChangeRecord,
  state: End,
): { change: TypeChangeRecord; ops: Op[] } {
  const { checked, incompatible, examples } = change;
  const end = { state, checked, incompatible, examples, next: '', principal: '', leaseUntil: 0 };
  const progress = { ...end, finishedAt: isoTime(clock.now()) };
  return { change: withProgress(change, progress), ops: [progressOp(change, progress)] };
}

/**
 * The type gets the fields of the change, which nothing forbids any more.
 * @throws DuplicateKeyError when its new name is taken; ExpectationFailedError when somebody else has ended the work
 */
export async function applyUpdate(
  deps: Needs,
  change: TypeChangeRecord,
  before: MemoryTypeRecord,
): Promise<TypeChangeRecord> {
  const { types, fences } = deps;
  const { _id, organizationId } = before;
  const ended = endOps(deps, change, 'done');
  const next = parseJson(change.next) as NextType;
  const after: MemoryTypeRecord = {
    ...before,
    ...next,
    relationTargets: otherTargets(_id, relationsOf(next)),
    version: before.version + 1,
    revision: before.revision + 1,
    state: 'active',
    next: null,
    updatedAt: ended.change.finishedAt!,
  };
  const events = changeEvents(
    { principal: principalOf(change), requestId: change.requestId },
    {
      eventType: 'memory.type.updated.v1',
      id: _id,
      revision: after.revision,
      time: after.updatedAt,
      names: { type: after.type, version: after.version },
      changes: changesOf(auditedFields(before), auditedFields(after)),
    },
  );
  const typeFences = await fences.ofType(organizationId, _id);
  await types.change(before, after, typeFences, [...ended.ops, ...releasedBy(before, after), ...events]);
  return ended.change;
}

/** Their relations no longer point to these types. */
const releasedBy = (
  before: Pick<MemoryTypeRecord, 'relationTargets'>,
  after: Pick<MemoryTypeRecord, 'relationTargets'>,
): Op[] => releaseTargets((before.relationTargets ?? []).filter((id) => !after.relationTargets!.includes(id)));

/**
 * Ends the work and leaves the type as it was before; objects that a deletion has deleted stay deleted.
 * @throws ExpectationFailedError when somebody else has ended the work
 */
export async function endWithout(
  deps: Needs,
  change: TypeChangeRecord,
  type: MemoryTypeRecord,
  state: 'failed' | 'cancelled',
): Promise<TypeChangeRecord> {
  const { usage, changes } = deps;
  const { organizationId } = type;
  const ended = endOps(deps, change, state);
  const bytes = typeBytes(type);
  const relationTargets = otherTargets(type._id, relationsOf(type));
  const ops: Op[] = [...ended.ops];
  if (change.action !== 'dryRun')
    ops.push(
      update(TYPES, asRead(type), { set: { state: 'active', next: null, bytes, relationTargets } }),
      ...releasedBy(type, { relationTargets }),
    );
  if (change.action === 'update') {
    const { jsonSchema } = parseJson(change.next) as NextType;
    const schemaBytes = Buffer.byteLength(type.jsonSchema) - Buffer.byteLength(jsonSchema);
    ops.push(...usage.restoreType(organizationId, { schemaBytes, bytes: bytes - (type.bytes ?? 0) }));
  }
  await changes.apply(organizationId, ops);
  return ended.change;
}
