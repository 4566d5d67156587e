import { MongoNetworkTimeoutError, MongoServerError, type Db, type IndexDescriptionInfo } from 'mongodb';
import { StartError } from '../../core/start-error.ts';
import { indexesOf, type EngineIndex } from '../indexes.ts';
import { withMongoTimeout, DUPLICATE_KEY, TimedOutError } from './faults.ts';
import type { Collection } from '../store.ts';

/** IndexBuildAborted, WriteConflict: another process makes the same at this moment. */
const MEANWHILE: readonly unknown[] = [276, 112];
const NAMESPACE_EXISTS = 48;
/** IndexOptionsConflict, IndexKeySpecsConflict: the server has this index, defined otherwise. */
const OTHERWISE: readonly unknown[] = [85, 86];

/**
 * Makes the missing collections and indexes, then looks whether all are there as declared. Indexes that are not declared
 * stay: a replica of an older release may need them.
 * @throws StartError that names the index, or when they take longer than `limitMs`
 */
export async function prepareCollections(
  db: Db,
  collections: readonly Collection<never>[],
  limitMs: number,
): Promise<void> {
  try {
    await withMongoTimeout(Promise.all(collections.map((collection) => prepareCollection(db, collection))), limitMs);
  } catch (error) {
    throw error instanceof TimedOutError
      ? new StartError(`MongoDB still makes the indexes of the database ${db.databaseName}: start again later`, {
          cause: error,
        })
      : error;
  }
}

async function prepareCollection(db: Db, collection: Collection<never>): Promise<void> {
  const { name } = collection;
  await meanwhile(() => db.createCollection(name));
  const declared = [...new Map(indexesOf(collection).map((index) => [index.name, index])).values()];
  for (const index of declared) await makeIndex(db, name, index);
  const present = declared.length === 0 ? [] : await db.collection(name).indexes();
  for (const index of declared) if (!present.some((other) => same(index, other))) throw differs(db, index);
}

async function makeIndex(db: Db, table: string, index: EngineIndex): Promise<void> {
  const key = index.columns.map((column): [string, 1] => [column, 1]);
  try {
    await meanwhile(() =>
      db.collection(table).createIndex(key, { name: index.name, ...(index.unique && { unique: true }) }),
    );
  } catch (error) {
    if (!(error instanceof MongoServerError)) throw error;
    if (OTHERWISE.includes(error.code)) throw differs(db, index, error);
    if (error.code === DUPLICATE_KEY)
      throw new StartError(
        `MongoDB cannot make the index "${index.name}" in the database ${db.databaseName}: documents there have equal values`,
        { cause: error },
      );
    throw error;
  }
}

const same = ({ columns, unique }: EngineIndex, other: IndexDescriptionInfo): boolean =>
  Object.entries(other.key).join() === columns.map((column) => [column, 1]).join() &&
  (other.unique ?? false) === unique &&
  other.partialFilterExpression === undefined &&
  !other.sparse &&
  !other.hidden;

const differs = (db: Db, { name }: EngineIndex, cause?: unknown): StartError =>
  new StartError(
    `MongoDB has an index in place of "${name}" in the database ${db.databaseName} that is defined otherwise: drop it and start again`,
    { cause },
  );

/** Two processes that start at once make the same things, and an index may take longer than an answer: all succeed. */
async function meanwhile(make: () => Promise<unknown>, tries = 5): Promise<void> {
  try {
    await make();
  } catch (error) {
    // The server goes on, and whoever asks for the same index again waits for it.
    if (error instanceof MongoNetworkTimeoutError) return meanwhile(make, tries);
    if (error instanceof MongoServerError && error.code === NAMESPACE_EXISTS) return;
    if (!(error instanceof MongoServerError) || !MEANWHILE.includes(error.code) || tries === 0) throw error;
    await meanwhile(make, tries - 1);
  }
}
