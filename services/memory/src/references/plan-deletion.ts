import { ServiceError } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { Principal } from 'platform/core/principal.ts';
import { ExpectationFailedError, update, type Op } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { violationsOf } from '../objects/content.ts';
import { objectBytes } from '../objects/rules.ts';
import { OBJECTS, type BareObject } from '../objects/store.ts';
import type { ObjectWrite } from '../objects/grouped-writes.ts';
import { relationsOf, type StoredRelation } from '../types/relations.ts';
import { isListed, isVisible, visibleTo, type Definition } from '../types/rules.ts';
import type { MemoryTypeRecord } from '../types/store.ts';
import { endReferences } from './end-references.ts';
import { countOps, liveRelations } from './plan-references.ts';
import { removeReference, type ReferenceRecord } from './store.ts';
import { wantedReferences } from './wanted.ts';
import { withoutKey } from './without-key.ts';

/** That one deletion deletes or changes: they are one batch. */
const MAX_OBJECTS = 1_000;
/** That it removes: those to its objects and those that its objects have. */
const MAX_REFERENCES = 2_000;
/** Of the objects that it changes. */
const MAX_BYTES = 8_388_608;
const EXAMPLES = 10;

type Needs = Pick<Deps, 'types' | 'objects' | 'references' | 'schedule' | 'schemas'>;

/** An object that refers, and its type. */
interface Referrer {
  object: BareObject;
  type: MemoryTypeRecord;
}

/** An object that must be told of the deletion of a target. */
interface Change {
  source: BareObject;
  type: MemoryTypeRecord;
  /** What it loses. */
  nulled: { relation: StoredRelation; key: string; reference: ReferenceRecord }[];
}

/**
 * What the deletion of objects does to those that refer to them, as their relations say: all writes of its batch. They
 * may be of types that a user does not see, but an agent execution deletes and changes only those of the listed types.
 * @param type of the objects; its own references do not hinder the deletion when it is deleted as a whole
 * @throws ServiceError OBJECT_IN_USE with the objects that forbid it, or of too many with those that were found to be
 * deleted or changed, of those that the principal may see; ExpectationFailedError when references were made meanwhile
 */
export async function planDeletion(
  { types, objects, references, schedule, schemas }: Needs,
  principal: Principal,
  roots: readonly BareObject[],
  { time, wholeTypeId }: { time: string; wholeTypeId?: string },
): Promise<{ writes: ObjectWrite[]; ops: Op[] }> {
  const [{ organizationId }] = roots as [BareObject];
  const removed = new Map(roots.map((root) => [root._id, root]));
  const changes = new Map<string, Change>();
  const forbidding = new Map<string, Referrer>();
  /** Beside the roots, what would be deleted or changed. */
  const reached = new Map<string, Referrer>();
  const dropped = new Map<string, ReferenceRecord>();
  /** By source: how many of its dropped references are of relations that its type no longer has. */
  const meaningless = new Map<string, number>();
  const typesById = new Map<string, Promise<MemoryTypeRecord | undefined>>();
  const visible = visibleTo(principal);
  const typeOf = (id: string): Promise<MemoryTypeRecord | undefined> => {
    if (!typesById.has(id)) typesById.set(id, types.byId(organizationId, id, {}));
    return typesById.get(id)!;
  };

  const live = new Map<MemoryTypeRecord, StoredRelation[]>();
  const relationOf = ({ relationId }: ReferenceRecord, type?: MemoryTypeRecord): StoredRelation | undefined => {
    if (type && !live.has(type)) live.set(type, liveRelations(type));
    return type && live.get(type)!.find(({ id }) => id === relationId);
  };
  /** @param what the deletion would do, which is too much for one batch */
  const tooLarge = (what: string): ServiceError =>
    inUse(principal, [...reached.values()], `The deletion would ${what}`);
  const requireFew = (): void => {
    if (removed.size + changes.size > MAX_OBJECTS) throw tooLarge(`delete or change more than ${MAX_OBJECTS} objects`);
  };
  const drop = (reference: ReferenceRecord): void => {
    dropped.set(reference._id, reference);
    if (dropped.size > MAX_REFERENCES) throw tooLarge(`remove more than ${MAX_REFERENCES} references`);
  };
  /** Not all references to a target were read. */
  let isCrowded = false;

  for (const target of removed.values()) {
    requireFew();
    if (!target.referrers) continue;
    // Small reads of the embedded store are made at once, without giving way to others.
    await schedule(organizationId, () => undefined);
    const toTarget = await references.toTarget(organizationId, target._id, MAX_OBJECTS + 1);
    if (toTarget.length > MAX_OBJECTS) {
      isCrowded = true;
      await endMeaningless(toTarget);
    } else if (toTarget.length !== target.referrers) throw new ExpectationFailedError(0, OBJECTS.name);
    const sources = await objects.bareByIds(
      organizationId,
      toTarget.map(({ sourceId }) => sourceId).filter((id) => !removed.has(id)),
    );
    for (const reference of toTarget) {
      const { sourceId, sourceTypeId } = reference;
      drop(reference);
      if (removed.has(sourceId) || sourceTypeId === wholeTypeId) continue;
      const type = await typeOf(sourceTypeId);
      const relation = relationOf(reference, type);
      if (!type || !relation) {
        meaningless.set(sourceId, (meaningless.get(sourceId) ?? 0) + 1);
        continue;
      }
      const source = sources.get(sourceId);
      if (!source) throw new ExpectationFailedError(0, OBJECTS.name);
      const forbids = relation.onDelete === 'restrict' || !isListed(visible, type);
      (forbids ? forbidding : reached).set(sourceId, { object: source, type });
      if (forbids) continue;
      if (relation.onDelete === 'cascade') removed.set(sourceId, source);
      else {
        const change = changes.get(sourceId) ?? { source, type, nulled: [] };
        changes.set(sourceId, change);
        change.nulled.push({ relation, key: target.key, reference });
      }
    }
  }

  const writes: ObjectWrite[] = [];
  requireFew();
  if (isCrowded && forbidding.size === 0) throw tooLarge(`remove more than ${MAX_OBJECTS} references to one object`);
  for (const before of removed.values()) {
    const type = await typeOf(before.typeId);
    if (!type) throw new ExpectationFailedError(0, OBJECTS.name);
    writes.push({ before, time, type: { name: type.type, epoch: type.epoch } });
    if (before.references) for (const own of await references.ofSource(organizationId, before._id)) drop(own);
  }
  const changed = [...changes.values()].filter(({ source }) => !removed.has(source._id));
  if (sumOfBytes(changed) > MAX_BYTES) throw tooLarge(`change objects of more than ${MAX_BYTES} bytes`);
  for (const { source: bare, type, nulled } of changed) {
    const source = await objects.byId(organizationId, bare._id);
    if (source?.revision !== bare.revision) throw new ExpectationFailedError(0, OBJECTS.name);
    const content = withoutKey(parseJson(source.content) as Record<string, unknown>, nulled);
    const fits = (definition: Definition): Promise<boolean> =>
      schedule(organizationId, () => {
        const { violations, derived } = violationsOf(schemas, { organizationId, ...definition }, content);
        const { violations: ofRelations } = wantedReferences(relationsOf(definition), content);
        return violations.length + ofRelations.length === 0 && (derived ?? source.key) === source.key;
      });
    if (!(await fits(type))) {
      forbidding.set(source._id, { object: source, type });
      continue;
    }
    // Whoever checks the objects for the change may have passed this one already.
    if (type.next && type.state === 'changing' && !(await fits(parseJson(type.next) as Definition)))
      throw new ServiceError('TYPE_CHANGING', 'A memory type is being changed, and forbids what the deletion would do');
    const text = JSON.stringify(content);
    const after = {
      ...source,
      content: text,
      schemaVersion: type.version,
      revision: source.revision + 1,
      bytes: objectBytes({ content: text, key: source.key }),
      updatedAt: time,
    };
    const remaining = (source.references ?? 0) - nulled.length - (meaningless.get(source._id) ?? 0);
    meaningless.delete(source._id);
    writes.push({
      before: source,
      after,
      time,
      type: { name: type.type, epoch: type.epoch },
      references: { references: remaining, ops: [] },
    });
  }
  const blocked = [...forbidding.values()].filter(({ object }) => !removed.has(object._id));
  if (blocked.length > 0 || isCrowded) throw inUse(principal, blocked);
  const gone = [...dropped.values()];
  const survivors = gone.filter(({ targetId }) => !removed.has(targetId));
  const recounted = [...meaningless].filter(([sourceId]) => !removed.has(sourceId));
  return {
    writes,
    ops: [
      ...gone.map(removeReference),
      ...countOps(survivors.map(({ targetId }) => ({ targetId, by: -1 }))),
      ...recounted.map(([_id, count]) => update(OBJECTS, { _id }, { increment: { references: -count } })),
    ],
  };

  /** One batch has no room for all references to the target, but those that mean nothing may go before it. */
  async function endMeaningless(toTarget: readonly ReferenceRecord[]): Promise<void> {
    const meaninglessOnes: ReferenceRecord[] = [];
    for (const reference of toTarget)
      if (!relationOf(reference, await typeOf(reference.sourceTypeId))) meaninglessOnes.push(reference);
    if (meaninglessOnes.length === 0) return;
    await objects.apply(organizationId, endReferences(meaninglessOnes));
    throw new ExpectationFailedError(0, OBJECTS.name);
  }
}

/** Of their contents together. */
const sumOfBytes = (changed: readonly Change[]): number =>
  changed.reduce((sum, { source }) => sum + (source.bytes ?? 0), 0);

/** Names only what the principal may see. */
function inUse(principal: Principal, referrers: readonly Referrer[], message?: string): ServiceError {
  const visible = visibleTo(principal);
  const seen = referrers.filter(({ type }) => isVisible(visible, type));
  return new ServiceError('OBJECT_IN_USE', message, {
    facts: {
      ...(seen.length > 0 && { count: seen.length }),
      examples: seen.slice(0, EXAMPLES).map(({ object: { _id: id, key }, type }) => ({ id, type: type.type, key })),
    },
  });
}
