import { parseJson } from 'platform/core/parse-json.ts';
import { invalid } from 'platform/core/errors.ts';
import type { KeyedMutex } from 'platform/core/keyed-mutex.ts';
import { update, type Op } from 'platform/store/store.ts';
import { covers, requireActive } from './rules.ts';
import { asRead, TYPES, type MemoryTypeRecord, type MemoryTypes } from './store.ts';

/**
 * Runs work that writes several types of the organization: a new type, or the targets of relations. Those that point to
 * one target write it, so all but one of them would lose each attempt. Work that also waits for its own type waits for
 * that first.
 */
export const inTurnOfTypes = <T>(mutex: KeyedMutex, organizationId: string, work: () => Promise<T>): Promise<T> =>
  mutex(organizationId, 'types', work);

/** For a batch that ends relations: their target types have one dependent less. */
export const releaseTargets = (targetIds: readonly string[]): Op[] =>
  targetIds.map((_id) => update(TYPES, { _id }, { increment: { dependents: -1 } }));

/**
 * For a batch that writes a type with relations: expects that their target types are as they were read, counts the new
 * ones, and fails what is to be written to a target by somebody who has not seen this batch.
 */
export const expectTargets = (targets: readonly MemoryTypeRecord[], present: readonly string[]): Op[] =>
  targets.map((target) =>
    update(TYPES, asRead(target), { increment: { dependents: present.includes(target._id) ? 0 : 1, relied: 1 } }),
  );

/**
 * The target types of relations that stay as they are while the audience of their type changes.
 * @throws ServiceError INVALID_REQUEST when a target is seen by fewer; TYPE_CHANGING
 */
export async function targetsSeenBy(
  types: MemoryTypes,
  { organizationId, relationTargets = [] }: MemoryTypeRecord,
  audience: readonly string[],
): Promise<MemoryTypeRecord[]> {
  const targets = await Promise.all(relationTargets.map((id) => types.byId(organizationId, id, {})));
  return targets.map((target) => {
    if (!target || !covers(target.audience, audience))
      throw invalid('/visibility', 'visibility must not include anybody who does not see a target of the relations');
    requireActive(target);
    return target;
  });
}

/**
 * Checks that everybody who sees a type whose relations point to this one, or is to see it, will still see this one.
 * @throws ServiceError INVALID_REQUEST
 */
export async function requireSeenByDependents(
  types: MemoryTypes,
  { _id, organizationId, dependents = 0 }: MemoryTypeRecord,
  audience: readonly string[],
): Promise<void> {
  if (dependents === 0) return;
  for (const { audience: present, next } of await types.dependentsOf(organizationId, _id))
    if (![present, next ? nextAudience(next) : []].every((seenBy) => covers(audience, seenBy)))
      throw invalid('/visibility', 'visibility must include all who see a type whose relations point to this one');
}

const nextAudience = (next: string): string[] => (parseJson(next) as Pick<MemoryTypeRecord, 'audience'>).audience;
