import type { Engine } from './open-store.ts';
import { update, type Changes, type Collection, type Document, type Op, type Scalar } from './store.ts';

type Fields = Readonly<Record<string, unknown>>;
/** `shape` and `writes` are the store's own; an engine that other processes write to counts the updates of a document. */
type Stored = Fields & { readonly _id: string; readonly shape?: number; readonly writes?: number };

const BATCH = 100;

/**
 * Every document carries the number of the shape in which its last writer knew it. A replica of the release before writes
 * its own number into what it touches, so what it did not know of is made anew by the next migration and by every read:
 * old and new replicas may write side by side. Documents without a number are of shape 1.
 */
export function stamped(op: Op): Op {
  const { shape } = op.collection;
  if (op.kind === 'insert') return { ...op, document: { ...op.document, shape } as Document };
  if (op.kind === 'update') return { ...op, changes: { ...op.changes, set: { ...op.changes.set, shape } as Changes<Document>['set'] } };
  return op;
}

/** The document as the service knows it: upgraded where an older writer was last, without the store's own fields. */
export function asKnown(collection: Collection<never>, { shape = 1, writes: _, ...document }: Stored): Fields {
  return shape < collection.shape ? { ...document, ...upgraded(collection, document, shape) } : document;
}

/** What the upgrades from `shape` to the collection's own set. */
function upgraded({ shape: known, upgrades }: Collection<never>, document: Fields, shape: number): Fields {
  let set: Fields = {};
  for (let from = shape; from < known; from++) set = { ...set, ...upgrades[from]!({ ...document, ...set } as never) };
  return set;
}

/**
 * Writes the documents of an older shape in the present one, each only if it is still as it was read; the others come
 * in a later round. Resolves to the number written.
 */
export async function migrate(engine: Engine, collections: readonly Collection<never>[], signal: AbortSignal): Promise<number> {
  let count = 0;
  for (const collection of collections.filter(({ shape }) => shape > 1)) {
    for (const older of [{ shape: null }, { shape: { lt: collection.shape } }]) {
      for (let after: Scalar[] | undefined; !signal.aborted; ) {
        const batch = (await engine.find(collection, older, { limit: BATCH, ...(after && { after }) })) as Stored[];
        for (const document of batch) count += await migrateOne(engine, collection, document);
        if (batch.length < BATCH) break;
        after = [batch.at(-1)!._id];
      }
    }
  }
  return count;
}

async function migrateOne(engine: Engine, collection: Collection<never>, document: Stored): Promise<number> {
  const { _id, shape = null, writes = null, ...fields } = document;
  const set = { ...upgraded(collection, { _id, ...fields }, shape ?? 1), shape: collection.shape };
  try {
    await engine.apply([update(collection, { _id, shape, writes } as never, { set: set as never })]);
    return 1;
  } catch (error) {
    if ((error as Error).name === 'ExpectationFailed') return 0;
    throw error;
  }
}
