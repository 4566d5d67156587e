import { ServiceError } from 'platform/core/errors.ts';
import { isoTime } from 'platform/core/clock.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { DuplicateKeyError, ExpectationFailedError } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { changeEvents } from '../events.ts';
import type { BareObject } from '../objects/store.ts';
import { writeObjects } from '../objects/write-objects.ts';
import { objectCountOf } from '../types/fences.ts';
import { endReferences } from '../references/end-references.ts';
import { planDeletion } from '../references/plan-deletion.ts';
import { releaseTargets } from '../types/relation-ops.ts';
import type { MemoryTypeRecord } from '../types/store.ts';
import { applyUpdate, endOps, endWithout } from './end-change.ts';
import { checkObjects } from './check-objects.ts';
import { principalOf, progressOp, removeChangeOp, withProgress, type TypeChangeRecord } from './store.ts';

const DELETIONS = 50;
/** What one batch of a deletion removes of them, but for those of a single object. */
const REFERENCES = 1_000;

type Needs = Pick<
  Deps,
  | ('types' | 'objects' | 'references' | 'fences' | 'usage' | 'changes' | 'groupedWrites' | 'storeNow')
  | ('schedule' | 'schemas' | 'clock' | 'config' | 'log')
>;

/**
 * Carries out work of this process to its end, or until `signal` aborts; then another process may go on. Each write
 * expects the record of the work as this process wrote it last, so a process that lost its lease writes nothing.
 * @returns the record as it is afterwards; of cancelled work when other work has taken its place
 */
export async function carryOut(deps: Needs, change: TypeChangeRecord, signal: AbortSignal): Promise<TypeChangeRecord> {
  const { types, fences, changes } = deps;
  const { _id, organizationId, action } = change;
  try {
    const type = await types.byId(organizationId, _id, {});
    if (!type) return { ...change, state: 'cancelled' };
    // From here on no object is written by a request that has not seen the announcement.
    if (action !== 'dryRun') await fences.raise(organizationId, _id, type.epoch, signal);
    if (action === 'delete') return await deleteType(deps, change, type, signal);
    const checked = await checkObjects(deps, change, type, signal);
    if (signal.aborted) return await handOver(deps, checked);
    if (action === 'dryRun') {
      const ended = endOps(deps, checked, 'done');
      await changes.apply(organizationId, ended.ops);
      return ended.change;
    }
    if (checked.incompatible > 0 && !change.force) return await endWithout(deps, checked, type, 'failed');
    return await applyUpdate(deps, checked, type).catch((error: unknown) => {
      // Meanwhile another type has got the name.
      if (error instanceof DuplicateKeyError) return endWithout(deps, checked, type, 'failed');
      throw error;
    });
  } catch (error) {
    if (!(error instanceof ExpectationFailedError)) throw error;
    const present = await changes.byType(organizationId, _id);
    if (present?.changeId === change.changeId) {
      const isOurs = present.state === 'running' && present.owner === change.owner;
      // Not the record has changed but the type: relations of another type have begun or ended to point to it.
      return isOurs ? carryOut(deps, present, signal) : present;
    }
    const isDeleted = action === 'delete' && !(await types.byId(organizationId, _id, {}));
    return { ...change, state: isDeleted ? 'done' : 'cancelled' };
  }
}

/** Another process may go on at once. */
async function handOver({ changes }: Needs, change: TypeChangeRecord): Promise<TypeChangeRecord> {
  await changes.apply(change.organizationId, [progressOp(change, { leaseUntil: 0 })]);
  return change;
}

const referencesOf = ({ references = 0, referrers = 0 }: BareObject): number => references + referrers;

/** The first objects of a page, at least one, as far as a batch has room for their references. */
function withFewReferences(page: readonly BareObject[]): BareObject[] {
  let sum = 0;
  const end = page.findIndex((object, index) => (sum += referencesOf(object)) > REFERENCES && index > 0);
  return page.slice(0, end < 0 ? page.length : end);
}

/**
 * Deletes the objects in batches, newest last, then the type. References to one that has many go before it: no other
 * type points to this one, so they are of its own objects, or of relations that are gone.
 */
async function deleteType(
  deps: Needs,
  change: TypeChangeRecord,
  type: MemoryTypeRecord,
  signal: AbortSignal,
): Promise<TypeChangeRecord> {
  const { types, objects, references, fences, usage, changes, clock, config, storeNow } = deps;
  const { _id, organizationId, version, jsonSchema, bytes = 0 } = type;
  const context = contextOf(change, signal);
  let held = change;
  for (;;) {
    if (signal.aborted) return handOver(deps, held);
    const page = withFewReferences(await objects.anyOfType(organizationId, _id, DELETIONS));
    const time = isoTime(clock.now());
    if (page.length === 0) {
      const typeFences = await fences.ofType(organizationId, _id);
      // Meanwhile somebody may have deleted an object; the count was read before.
      if (objectCountOf(typeFences) !== 0) continue;
      const names = { type: type.type, version };
      const revision = type.revision + 1;
      await types.remove(type, typeFences, [
        usage.removeType(organizationId, { schemaBytes: Buffer.byteLength(jsonSchema), bytes }),
        removeChangeOp(held),
        ...releaseTargets(type.relationTargets ?? []),
        ...changeEvents(context, { eventType: 'memory.type.deleted.v1', id: _id, revision, time, names }),
      ]);
      return { ...held, state: 'done', finishedAt: time };
    }
    const [first] = page as [BareObject];
    const leaseUntil = (await storeNow()) + config.LEASE_MS;
    const written = { name: type.type, epoch: type.epoch };
    const isCrowded = referencesOf(first) > REFERENCES;
    const progress = { checked: held.checked + (isCrowded ? 0 : page.length), cursor: first._id, leaseUntil };
    try {
      if (isCrowded) {
        const ended = await references.toTarget(organizationId, first._id, REFERENCES);
        await changes.apply(organizationId, [...endReferences(ended), progressOp(held, progress)]);
        held = withProgress(held, progress);
        continue;
      }
      const alone = page.every((object) => referencesOf(object) === 0);
      const { writes, ops } = alone
        ? { writes: page.map((before) => ({ before, time, type: written })), ops: [] }
        : await planDeletion(deps, context.principal, page, { time, wholeTypeId: _id });
      await writeObjects(deps, context, writes, { further: [...ops, progressOp(held, progress)] });
      held = withProgress(held, progress);
    } catch (error) {
      // The signal aborted before the batch was applied.
      if (error instanceof ServiceError && error.reason === 'CLIENT_GONE') return handOver(deps, held);
      if (!(error instanceof ExpectationFailedError)) throw error;
      const present = await changes.byType(organizationId, _id);
      // An object of the page has changed: read again.
      if (present?.steps !== held.steps) throw error;
    }
  }
}

/** Its writes are in the name of whoever asked for the work. */
const contextOf = (change: TypeChangeRecord, signal: AbortSignal): CallContext => ({
  principal: principalOf(change),
  caller: 'memory',
  requestId: change.requestId,
  signal,
  deadline: Infinity,
});
