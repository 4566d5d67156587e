import type { Engine } from './engine.ts';
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
import { atOnce } from './turns.ts';

type Fields = Readonly<Record<string, unknown>>;
/**
 * The store itself adds these fields to a document: `shape` is the document version (the field's name is older than the
 * word), `writes` counts the updates on an engine that several processes write to.
 */
type Stored = Fields & { readonly _id: string; readonly shape?: number; readonly writes?: number };

const BATCH = 100;
/** A replica of the previous release may lower the version of a document between any two attempts. */
const MAX_ATTEMPTS = 16;

/**
 * Every document stores the version in which its last writer knew it; one without a number is of version 1. A replica
 * of the previous release writes its own, lower number, so every read, and the next migration, computes again what
 * that replica did not know of. That is why old and new replicas may write side by side.
 */
function withVersion(op: Op): Op {
  const { version } = op.collection;
  if (op.kind === 'insert') return { ...op, document: { ...op.document, shape: version } as Document };
  if (op.kind === 'remove') return op;
  const where = version > 1 ? ({ ...op.where, shape: { gte: version } } as Expectation<Document>) : op.where;
  const set = { ...op.changes.set, shape: version } as Changes<Document>['set'];
  return { ...op, where, changes: { ...op.changes, set } };
}

type Update = Extract<Op, { kind: 'update' }>;
const isVersioned = (op: Op): op is Update => op.kind === 'update' && op.collection.version > 1;

/**
 * Applies a batch. An update never marks a document as being of the present version while its fields are those of an
 * older one: such a document is upgraded first. An optional update does nothing when a replica of the previous
 * release writes the document in between.
 */
export async function applyVersioned(engine: Engine, ops: readonly Op[]): Promise<void> {
  const updates = ops.filter(isVersioned);
  let seen = updates.some(({ optional }) => optional) ? await upgradeTargets(engine, updates) : undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      return await engine.apply(ops.map(withVersion));
    } catch (error) {
      if (!(error instanceof ExpectationFailedError) || updates.length === 0 || attempt === MAX_ATTEMPTS) throw error;
      const found = await upgradeTargets(engine, updates);
      // The versions are as they were before this attempt, so it was another expectation that failed.
      if (found === seen) throw error;
      seen = found;
    }
  }
}

/**
 * Upgrades the documents that the updates name. Resolves to a fingerprint of their versions before that, which differs
 * between two calls when a document was upgraded or written in between.
 */
async function upgradeTargets(engine: Engine, updates: readonly Update[]): Promise<string> {
  const found: unknown[] = [];
  for (const { collection, where } of updates) {
    const { _id, organizationId } = where as { _id: string; organizationId?: string };
    const [document] = (await engine.find(
      collection,
      { _id, ...(organizationId !== undefined && { organizationId }) },
      { limit: 1 },
      atOnce,
    )) as Stored[];
    found.push(document && [document.shape, document.writes]);
    if (document && (document.shape ?? 1) < collection.version) await migrateOne(engine, collection, document);
  }
  return JSON.stringify(found);
}

/** The document in the present version, without the fields that the store itself added. */
export function inPresentVersion(
  collection: Collection<never>,
  { shape: version = 1, writes: _, ...document }: Stored,
): Fields {
  return version < collection.version ? { ...document, ...upgradedFields(collection, document, version) } : document;
}

/** The fields that the upgrades set, one after the other, from `version` to the present one. */
function upgradedFields({ version: present, upgrades }: Collection<never>, document: Fields, version: number): Fields {
  let set: Fields = {};
  for (let from = version; from < present; from++)
    set = { ...set, ...upgrades[from]!({ ...document, ...set } as never) };
  return set;
}

/**
 * Writes the documents of older versions in the present one, each only if nobody changed it since it was read; a later
 * call migrates those that were changed. Resolves to the number of documents written.
 */
export async function migrate(
  engine: Engine,
  collections: readonly Collection<never>[],
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (const collection of collections.filter(({ version }) => version > 1)) {
    for (const older of [{ shape: null }, { shape: { lt: collection.version } }]) {
      for (let after: Scalar[] | undefined; !signal.aborted;) {
        const batch = (await engine.find(
          collection,
          older,
          { limit: BATCH, ...(after && { after }) },
          atOnce,
        )) as Stored[];
        for (const document of batch) count += await migrateOne(engine, collection, document);
        if (batch.length < BATCH) break;
        after = [batch.at(-1)!._id];
      }
    }
  }
  return count;
}

/** Resolves to 1, or to 0 when the document was changed since it was read. */
async function migrateOne(engine: Engine, collection: Collection<never>, document: Stored): Promise<number> {
  const { _id, shape = null, writes = null, ...fields } = document;
  const set = { ...upgradedFields(collection, { _id, ...fields }, shape ?? 1), shape: collection.version };
  try {
    await engine.apply([update(collection, { _id, shape, writes }, { set: set as never })]);
    return 1;
  } catch (error) {
    if (error instanceof ExpectationFailedError) return 0;
    throw error;
  }
}
