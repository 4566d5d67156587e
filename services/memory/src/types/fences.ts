import { sharedInTurn } from 'platform/core/shared-in-turn.ts';
import {
  collection,
  insert,
  remove,
  update,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';

/**
 * Fences keep objects consistent with their type, without locks.
 *
 * The problem: a request that writes an object reads the type, validates the content against its schema, and then
 * writes. Between the read and the write another request, perhaps in another process, may change the schema or delete
 * the type.
 *
 * The solution: each type has an *epoch*, a number that rises when its objects must obey more than before, and one
 * fence record for every counter shard (counter-shards.ts). Each fence record holds an epoch and a part of the type's
 * number of objects.
 * - A batch that creates, updates or deletes objects also updates one fence record: it expects no higher epoch than was
 *   read with the schema, and changes the count.
 * - A batch that changes the schema of a type without objects sets the next epoch in all fence records of the type, and
 *   expects every count as it was read (their sum was 0).
 * - A batch that deletes the type removes all its fence records, and expects their epochs and counts as they were read.
 * - A change of a type with objects is announced in the type first, with the next epoch (changes/start-change.ts). Then
 *   the fence records are raised to it one after the other, so that no batch has to win against all writers at once.
 *   When all are raised, whoever writes an object has read the announcement and checks it against both schemas. Only
 *   then the objects that exist are read, and last the schema takes its place, which needs no further epoch.
 * If two such batches race, the second to commit finds an epoch, a count or a record changed. The store then rejects
 * that whole batch with ExpectationFailedError, and its request reads and checks everything again (`retryOnConflict`).
 *
 * A rename or a change of visibility expects only the epoch, so it does not make writers of objects fail, except those
 * with `If-Match`: the ETag of an object contains the name of its type.
 * The sum of the counts is the exact number of objects, at the same cost for any number.
 */
export interface FenceRecord extends OrganizationDocument {
  typeId: string;
  /** The name of the type, for those batches alone whose request has an ETag. */
  type: string;
  /** Number of the counter shard. */
  k: number;
  epoch: number;
  /** Objects created less objects deleted through this record; may be negative. Only the sum has a meaning. */
  count: number;
  /**
   * Rises with every batch that expects the epoch. An update of an object leaves `count` as it is, and an engine may
   * skip a write that changes nothing, and with it the detection of a conflict.
   */
  moves: number;
}
export const FENCES = collection<FenceRecord>('fences', {
  scope: 'organization',
  columns: {
    ...{ typeId: 'id', type: 'text', k: 'number', epoch: 'number', count: 'number', moves: 'number' },
  },
  indexes: [{ fields: ['typeId'] }],
  version: 3,
  upgrades: { 1: () => ({ visibility: null }), 2: () => ({ typeLower: null, audience: null }) },
});

/** What the fences repeat of their type. */
export type FencedType = Pick<FenceRecord, 'organizationId' | 'type' | 'epoch'> & {
  _id: string;
};

const fenceId = (typeId: string, shard: number): string => `${typeId}:${shard}`;

/** The number of objects of the types whose fences these are. Exact when all fences of these types are given. */
export const objectCountOf = (fences: readonly FenceRecord[]): number =>
  fences.reduce((sum, { count }) => sum + count, 0);

/** For the batch that creates the type. */
export const insertFences = ({ _id: typeId, organizationId, type, epoch }: FencedType, shardCount: number): Op[] =>
  Array.from({ length: shardCount }, (_, k) =>
    insert(FENCES, {
      _id: fenceId(typeId, k),
      organizationId,
      typeId,
      type,
      k,
      epoch,
      count: 0,
      moves: 0,
    }),
  );

/**
 * For the batch that changes the type.
 * @param fences all fences of the type, as they were read
 * @param after the changed type; a new epoch is allowed only when the counts add up to 0
 */
export const changeFences = (fences: readonly FenceRecord[], { type, epoch }: FencedType): Op[] =>
  fences.flatMap((fence) => {
    if (fence.type === type && fence.epoch === epoch) return [];
    const expected = fence.epoch === epoch ? { epoch } : { epoch: fence.epoch, count: fence.count };
    return [update(FENCES, { _id: fence._id, ...expected }, { set: { type, epoch } })];
  });

/** For the batch that deletes the type. @param fences all fences of the type, as they were read */
export const removeFences = (fences: readonly FenceRecord[]): Op[] =>
  fences.map(({ _id, epoch, count }) => remove(FENCES, { _id, epoch, count }));

export function openFences(store: Store) {
  const countInTurn = sharedInTurn<number>();

  return {
    /** All fences of the type. */
    ofType: (organizationId: string, typeId: string): Promise<FenceRecord[]> =>
      store.find(organizationId, FENCES, { typeId }),
    /** How many objects these types have. */
    countObjects: (organizationId: string, typeIds: readonly string[]): Promise<number> =>
      countInTurn(organizationId, [typeIds], () =>
        store.sum(organizationId, FENCES, { typeId: { in: typeIds } }, 'count'),
      ),
    /** Raises all fences of the type to the epoch that the type has already, each in a batch of its own. */
    async raise(organizationId: string, typeId: string, epoch: number, signal: AbortSignal): Promise<void> {
      const lower = await store.find(organizationId, FENCES, { typeId, epoch: { lt: epoch } });
      for (const { _id } of lower)
        await retryOnConflict(signal, () =>
          store.apply(organizationId, [
            update(FENCES, { _id, epoch: { lt: epoch } }, { set: { epoch } }, { optional: true }),
          ]),
        );
    },
    /**
     * For a batch that writes objects: expects no higher epoch than this one, and counts the objects.
     * @param shard number of the counter shard that the batch may write
     * @param name of the type, which is expected, too, when the object's ETag is a condition of the write
     */
    expectEpoch: (
      typeId: string,
      epoch: number,
      shard: number,
      countChange: number,
      name: { type?: string } = {},
    ): Op =>
      update(
        FENCES,
        { _id: fenceId(typeId, shard), epoch: { lt: epoch + 1 }, ...name },
        { increment: { count: countChange, moves: 1 } },
      ),
  };
}
export type Fences = ReturnType<typeof openFences>;
