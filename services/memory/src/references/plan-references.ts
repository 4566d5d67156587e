import { parseJson } from 'platform/core/parse-json.ts';
import { ServiceError, type Violation } from 'platform/core/errors.ts';
import { update, type Op } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { OBJECTS, type MemoryObjectRecord } from '../objects/store.ts';
import { relationsOf, type StoredRelation } from '../types/relations.ts';
import type { MemoryTypeRecord } from '../types/store.ts';
import { insertReference, referenceId, removeReference, type ReferencePlan } from './store.ts';
import { wantedReferences } from './wanted.ts';

/**
 * Looks up the targets of an object and makes the ops for its references.
 * @param source the object as it is to be; `references` is what it has now
 * @param relations of its type, and those that the type is to have while it changes
 * @returns violations when a target is missing
 */
export async function planReferences(
  { objects, references }: Pick<Deps, 'objects' | 'references'>,
  source: Pick<MemoryObjectRecord, '_id' | 'organizationId' | 'typeId' | 'key' | 'references'>,
  relations: readonly StoredRelation[],
  content: Record<string, unknown>,
): Promise<ReferencePlan | { violations: Violation[] }> {
  const { _id: sourceId, organizationId, typeId: sourceTypeId } = source;
  const present = source.references ? await references.ofSource(organizationId, sourceId) : [];
  const { wanted, violations } = wantedReferences(relations, content);
  const targets = new Map<string, { relationId: string; targetId: string }>();
  for (const [targetTypeId, ofType] of Map.groupBy(wanted, ({ relation }) => relation.targetTypeId)) {
    const keys = [...new Set(ofType.map(({ key }) => key))];
    const found = await objects.idsByKey(organizationId, targetTypeId, keys);
    for (const { relation, at, key } of ofType) {
      // An object may refer to itself: it is there as long as it is.
      if (targetTypeId === sourceTypeId && key === source.key) continue;
      const targetId = found.get(key);
      if (targetId === undefined)
        violations.push({ path: at, message: 'must be the key of a memory object that exists' });
      else {
        const reference = { relationId: relation.id, targetId };
        targets.set(referenceId({ sourceId, ...reference }), reference);
      }
    }
  }
  if (violations.length > 0) return { violations };

  const known = new Set(present.map(({ _id }) => _id));
  const gone = present.filter(({ _id }) => !targets.has(_id));
  const made = [...targets].filter(([id]) => !known.has(id)).map(([, target]) => target);
  return {
    references: targets.size,
    ops: [
      ...gone.map(removeReference),
      ...made.map((target) => insertReference({ organizationId, sourceId, sourceTypeId, ...target })),
      ...countOps([
        ...made.map(({ targetId }) => ({ targetId, by: 1 })),
        ...gone.map(({ targetId }) => ({ targetId, by: -1 })),
      ]),
    ],
  };
}

/**
 * What becomes of the references of an object that is written; undefined where it has none and its type no relations.
 * @throws ServiceError INVALID_CONTENT when a target is missing; TYPE_CHANGING when only announced relations need it
 */
export async function requireReferences(
  deps: Pick<Deps, 'objects' | 'references'>,
  type: MemoryTypeRecord,
  source: Parameters<typeof planReferences>[1],
  content: Record<string, unknown>,
): Promise<ReferencePlan | undefined> {
  const [present, all] = [relationsOf(type), liveRelations(type)];
  if (all.length === 0 && !source.references) return undefined;
  const plan = await planReferences(deps, source, all, content);
  if (!('violations' in plan)) return plan;
  const ofPresent = type.next ? await planReferences(deps, source, present, content) : plan;
  if ('violations' in ofPresent)
    throw new ServiceError('INVALID_CONTENT', undefined, { details: ofPresent.violations });
  throw new ServiceError('TYPE_CHANGING', undefined, { details: plan.violations });
}

/** Relations in force, and those that the type is to have while it changes; required if it is so in either. */
export const liveRelations = ({ relations, next }: MemoryTypeRecord): StoredRelation[] => {
  const present = relationsOf({ relations });
  const later = next ? relationsOf(parseJson(next) as { relations: string }) : [];
  const isRequired = (id: string): boolean => later.some((one) => one.id === id && one.required);
  return [
    ...present.map((one) => ({ ...one, required: one.required || isRequired(one.id) })),
    ...later.filter(({ id }) => present.every((one) => one.id !== id)),
  ];
};

/** Changes the counters of the targets, each once. The rows are expected: a target that has lost one may be gone. */
export function countOps(changes: readonly { targetId: string; by: number }[]): Op[] {
  const byTarget = new Map<string, number>();
  for (const { targetId, by } of changes) byTarget.set(targetId, (byTarget.get(targetId) ?? 0) + by);
  return [...byTarget].map(([_id, by]) =>
    update(OBJECTS, { _id }, { increment: { referrers: by } }, { optional: by < 0 }),
  );
}
