import { organizationOf, type Principal } from 'platform/core/principal.ts';
import type { CounterShards } from 'platform/jobs/counter-shards.ts';
import { requireWaitingCaller } from 'platform/store/retry-on-conflict.ts';
import { insert, remove, update, type Op } from 'platform/store/store.ts';
import { writeGroups, type GroupedWrite } from 'platform/store/write-groups.ts';
import type { ReferencePlan } from '../references/store.ts';
import type { Fences } from '../types/fences.ts';
import type { Usage } from '../usage/store.ts';
import { objectBytes } from './rules.ts';
import { asRead, OBJECTS, type BareObject, type MemoryObjectRecord, type MemoryObjects } from './store.ts';

/** One object before and after: created without `before`, deleted without `after`. */
export interface ObjectWrite {
  before?: BareObject | undefined;
  after?: MemoryObjectRecord | undefined;
  /** ISO-8601 UTC. */
  time: string;
  /** The type in the state in which the write was checked. */
  type: { readonly name: string; readonly epoch: number };
  /** What becomes of its references, if it has or gets any. */
  references?: ReferencePlan | undefined;
  /** The request has an ETag, which contains the name of the type: another name fails the batch. */
  expectName?: boolean;
}

/** What one request writes. */
export interface RequestWrites {
  principal: Principal;
  signal: AbortSignal;
  writes: readonly ObjectWrite[];
  eventOps: readonly Op[];
  further: readonly Op[];
}

/** A batch costs more than what it writes: each operation counts as so many bytes more. */
const OP_BYTES = 256;
const sizeOfBatch = ({ writes, eventOps, further }: RequestWrites): number => {
  const ops = sum(writes.map(({ references }) => 1 + (references?.ops.length ?? 0))) + eventOps.length + further.length;
  return OP_BYTES * ops + sum(writes.map(({ after }) => after?.bytes ?? 0));
};
/** A group is for several callers, so none of their signals ends its wait. */
const never = new AbortController().signal;

interface Stores {
  objects: Pick<MemoryObjects, 'apply'>;
  fences: Fences;
  usage: Usage;
  counterShards: CounterShards;
}

/**
 * Applies what requests write. Those of one event-loop turn and organization share a batch, so that the fence of a type
 * and the counters are written once for all of them.
 * @returns applies what one request writes, or rejects with DuplicateKeyError, ExpectationFailedError, or ServiceError
 * TIER_LIMIT or CLIENT_GONE
 */
export function openGroupedWrites({
  objects,
  fences,
  usage,
  counterShards,
}: Stores): (request: RequestWrites) => Promise<void> {
  const add = writeGroups<RequestWrites & GroupedWrite>(async (group) => {
    const { principal } = group[0]!;
    const organizationId = organizationOf(principal);
    const writes = group.flatMap((one) => one.writes);
    const fenceOps = (shard: number): Op[] =>
      [...Map.groupBy(writes, fenceOf).values()].map((ofFence) => {
        const [{ type, expectName }] = ofFence as [ObjectWrite];
        const epoch = Math.min(...ofFence.map((write) => write.type.epoch));
        const name = expectName ? { type: type.name } : {};
        return fences.expectEpoch(typeIdOf(ofFence[0]!), epoch, shard, sum(ofFence.map(countChange)), name);
      });
    await counterShards.withShard(organizationId, never, async (shard) => {
      for (const { signal } of group) requireWaitingCaller(signal);
      const count = await usage.changeObjects(organizationId, principal, growthOf(writes));
      await objects.apply(organizationId, [
        ...writes.flatMap(objectOps),
        ...group.flatMap(({ eventOps }) => eventOps),
        ...fenceOps(shard),
        ...count(shard),
        ...group.flatMap(({ further }) => further),
      ]);
    });
  });
  return (request) => {
    const { memory_objects, memory_bytes } = request.principal.limits;
    // the whole group is checked against the limits of its first write
    return add(organizationOf(request.principal), JSON.stringify([memory_objects, memory_bytes]), {
      ...request,
      bytes: sizeOfBatch(request),
    });
  };
}
export type GroupedWrites = ReturnType<typeof openGroupedWrites>;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
export const recordOf = ({ before, after }: ObjectWrite): BareObject => (after ?? before)!;
const typeIdOf = (write: ObjectWrite): string => recordOf(write).typeId;
/** Writes with the same text expect the same epoch and name of one fence. */
const fenceOf = (write: ObjectWrite): string =>
  write.expectName ? `${typeIdOf(write)} ${write.type.name}` : typeIdOf(write);
const countChange = ({ before, after }: ObjectWrite): number => (after ? 1 : 0) - (before ? 1 : 0);

/** `grown`: no limit applies to what takes no more than before, also where a release before did not count its bytes. */
export const growthOf = (writes: readonly ObjectWrite[]): { objects: number; bytes: number; grown: boolean } => ({
  objects: sum(writes.map(countChange)),
  bytes: sum(writes.map(({ before, after }) => (after?.bytes ?? 0) - (before?.bytes ?? 0))),
  grown: sum(writes.map(({ before, after }) => (after?.bytes ?? 0) - sizeOf(before))) > 0,
});

/** Of an object that is counted, its stored bytes; else what they would be. */
const sizeOf = (object?: BareObject): number =>
  object === undefined ? 0 : (object.bytes ?? objectBytes({ content: object.content ?? '', key: object.key }));

/** What an update writes: all but what never changes, and the counters, which others raise meanwhile. */
function writtenFields(after: MemoryObjectRecord): Partial<MemoryObjectRecord> {
  const { _id, organizationId, typeId, key, createdAt, references, referrers, ...written } = after;
  return written;
}

function objectOps({ before, after, references }: ObjectWrite): Op[] {
  const counted = references && { references: references.references };
  if (!before) return [insert(OBJECTS, { ...after!, ...counted }), ...(references?.ops ?? [])];
  if (!after) {
    // A change of the relations of its type may write references without a new revision.
    const counters = { referrers: before.referrers ?? null, references: before.references ?? null };
    return [remove(OBJECTS, { ...asRead(before), ...counters })];
  }
  const set = { ...writtenFields(after), ...counted };
  const expected = { ...asRead(before), ...(references && { references: before.references ?? null }) };
  return [update(OBJECTS, expected, { set }), ...(references?.ops ?? [])];
}
