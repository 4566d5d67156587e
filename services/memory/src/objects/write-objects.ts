import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { insert, remove, update, type Op } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { changeEvents, contentOfEvent } from '../events.ts';
import type { ReferencePlan } from '../references/plan-references.ts';
import { objectBytes } from './rules.ts';
import { asRead, OBJECTS, type BareObject, type MemoryObjectRecord } from './store.ts';

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

/**
 * Writes objects of one organization in one batch, with all that belongs to them: references, fences of types, usage,
 * change events and audit entries.
 * @param given.further ops of the batch
 * @param given.check what costs more than to find that the tier has no room; runs after that
 * @throws DuplicateKeyError when a key is taken; ExpectationFailedError when an object or its type has changed;
 * ServiceError TIER_LIMIT
 */
export async function writeObjects(
  deps: Pick<Deps, 'objects' | 'fences' | 'usage' | 'counterShards' | 'config'>,
  context: CallContext,
  writes: readonly ObjectWrite[],
  { further = [], check }: { further?: readonly Op[]; check?: () => Promise<void> } = {},
): Promise<void> {
  const { objects, fences, usage, counterShards, config } = deps;
  const organizationId = organizationOfCall(context);
  const count = await usage.changeObjects(organizationId, context.principal, growthOf(writes));
  await check?.();
  const ops = [...writes.flatMap(objectOps), ...writes.flatMap((write) => eventsOf(config, context, write))];
  const fenceOps = (shard: number): Op[] =>
    [...Map.groupBy(writes, typeIdOf)].map(([typeId, ofType]) => {
      const [{ type }] = ofType as [ObjectWrite];
      const name = ofType.some(({ expectName }) => expectName) ? { type: type.name } : {};
      return fences.expectEpoch(typeId, type.epoch, shard, sum(ofType.map(countChange)), name);
    });
  await counterShards.withShard(organizationId, context.signal, (shard) =>
    objects.apply(organizationId, [...ops, ...fenceOps(shard), ...count(shard), ...further]),
  );
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const recordOf = ({ before, after }: ObjectWrite): BareObject => (after ?? before)!;
const typeIdOf = (write: ObjectWrite): string => recordOf(write).typeId;
const countChange = ({ before, after }: ObjectWrite): number => (after ? 1 : 0) - (before ? 1 : 0);

/** `grown`: no limit applies to what takes no more than before, also where a release before did not count its bytes. */
const growthOf = (writes: readonly ObjectWrite[]): { objects: number; bytes: number; grown: boolean } => ({
  objects: sum(writes.map(countChange)),
  bytes: sum(writes.map(({ before, after }) => (after?.bytes ?? 0) - (before?.bytes ?? 0))),
  grown: sum(writes.map(({ before, after }) => (after?.bytes ?? 0) - sizeOf(before))) > 0,
});

/** Of an object that is counted, its stored bytes; else what they would be. */
const sizeOf = (object?: BareObject): number =>
  object === undefined ? 0 : (object.bytes ?? objectBytes({ content: object.content ?? '', key: object.key }));

function objectOps({ before, after, references }: ObjectWrite): Op[] {
  const counted = references && { references: references.references };
  if (!before) return [insert(OBJECTS, { ...after!, ...counted }), ...(references?.ops ?? [])];
  if (!after) {
    // A change of the relations of its type may write references without a new revision.
    const counters = { referrers: before.referrers ?? null, references: before.references ?? null };
    return [remove(OBJECTS, { ...asRead(before), ...counters })];
  }
  const { content, schemaVersion, revision, bytes, updatedAt } = after;
  const set = { content, schemaVersion, revision, ...(bytes !== undefined && { bytes }), updatedAt, ...counted };
  const expected = { ...asRead(before), ...(references && { references: before.references ?? null }) };
  return [update(OBJECTS, expected, { set }), ...(references?.ops ?? [])];
}

function eventsOf(config: Deps['config'], context: CallContext, write: ObjectWrite): Op[] {
  const { before, after, time, type } = write;
  const { _id: id, typeId, key, schemaVersion } = recordOf(write);
  return changeEvents(context, {
    eventType: !before ? 'memory.object.created.v1' : after ? 'memory.object.updated.v1' : 'memory.object.deleted.v1',
    id,
    revision: after?.revision ?? before!.revision + 1,
    time,
    names: { typeId, type: type.name, key, schemaVersion },
    content: contentOfEvent(after, config.MEMORY_EVENT_CONTENT_MAX_BYTES),
  });
}
