import type { Engine } from './open-store.ts';
import {
  ExpectationFailedError,
  update,
  type Changes,
  type Collection,
  type Document,
  type Expectation,
  type Op,
  type Scalar,
} from './store.ts';

type Fields = Readonly<Record<string, unknown>>;
/** `shape` and `writes` are the store's own; an engine that other processes write to counts the updates of a document. */
type Stored = Fields & { readonly _id: string; readonly shape?: number; readonly writes?: number };

const BATCH = 100;
/** How often a replica of the release before may come in between. */
const ROUNDS = 16;

/**
 * Every document carries the number of the shape in which its last writer knew it. A replica of the release before writes
 * its own number into what it touches, so what it did not know of is made anew by the next migration and by every read:
 * old and new replicas may write side by side. Documents without a number are of shape 1.
 */
function stamped(op: Op): Op {
  const { shape } = op.collection;
  if (op.kind === 'insert') return { ...op, document: { ...op.document, shape } as Document };
  if (op.kind === 'remove') return op;
  const where = shape > 1 ? ({ ...op.where, shape: { gte: shape } } as Expectation<Document>) : op.where;
  return { ...op, where, changes: { ...op.changes, set: { ...op.changes.set, shape } as Changes<Document>['set'] } };
}

type Update = Extract<Op, { kind: 'update' }>;
const isShaped = (op: Op): op is Update => op.kind === 'update' && op.collection.shape > 1;

/**
 * Applies a batch of which no update stamps what an older writer left half-known: such a document is first written in the
 * present shape. An optional update that a replica of the release before overtakes does nothing.
 */
export async function applyStamped(engine: Engine, ops: readonly Op[]): Promise<void> {
  const updates = ops.filter(isShaped);
  let seen = updates.some(({ optional }) => optional) ? await upgradeNamed(engine, updates) : undefined;
  for (let round = 1; ; round++) {
    try {
      return await engine.apply(ops.map(stamped));
    } catch (error) {
      if (!(error instanceof ExpectationFailedError) || updates.length === 0 || round === ROUNDS) throw error;
      const found = await upgradeNamed(engine, updates);
      // as they were before this attempt, so it is something else that was expected in vain
      if (found === seen) throw error;
      seen = found;
    }
  }
}

/** Resolves to what they name as it was found: a document that was of an older shape is another by now. */
async function upgradeNamed(engine: Engine, updates: readonly Update[]): Promise<string> {
  const found: unknown[] = [];
  for (const { collection, where } of updates) {
    const { _id, organizationId } = where as { _id: string; organizationId?: string };
    const [document] = (await engine.find(
      collection,
      { _id, ...(organizationId !== undefined && { organizationId }) },
      { limit: 1 },
    )) as Stored[];
    found.push(document && [document.shape, document.writes]);
    if (document && (document.shape ?? 1) < collection.shape) await migrateOne(engine, collection, document);
  }
  return JSON.stringify(found);
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
export async function migrate(
  engine: Engine,
  collections: readonly Collection<never>[],
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (const collection of collections.filter(({ shape }) => shape > 1)) {
    for (const older of [{ shape: null }, { shape: { lt: collection.shape } }]) {
      for (let after: Scalar[] | undefined; !signal.aborted;) {
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
    await engine.apply([update(collection, { _id, shape, writes }, { set: set as never })]);
    return 1;
  } catch (error) {
    if (error instanceof ExpectationFailedError) return 0;
    throw error;
  }
}
