import { MongoNetworkTimeoutError, MongoServerError, type Db, type IndexDescriptionInfo } from 'mongodb';
import { StartError } from '../../core/start-error.ts';
import { indexesOf, withoutLastField, type EngineIndex } from '../indexes.ts';
import { DUPLICATE_KEY, TimedOutError, withMongoTimeout } from './errors.ts';
import type { Collection } from '../store.ts';

/** IndexBuildAborted, WriteConflict: another process is making the same index or collection at this moment. */
const CONCURRENT: readonly unknown[] = [276, 112];
const NAMESPACE_EXISTS = 48;
/** IndexOptionsConflict, IndexKeySpecsConflict: the server has an index of this name or key with another definition. */
const DIFFERENT: readonly unknown[] = [85, 86];

/**
 * Makes missing collections and indexes, then checks that all are there as declared. Indexes that are not declared
 * stay: a replica of an older release may need them.
 * @throws StartError that names an index which differs or cannot be made, or when it all takes longer than `limitMs`
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
      ? new StartError(`MongoDB is still making the indexes of the database ${db.databaseName}: start again later`, {
          cause: error,
        })
      : error;
  }
}

async function prepareCollection(db: Db, collection: Collection<never>): Promise<void> {
  const { name } = collection;
  await tolerateConcurrent(() => db.createCollection(name));
  // A query that went through the values of a field could miss a document whose value changes meanwhile: it leaves a
  // range of the index that is not read yet, for one that is. So queries without the field have an index of their own.
  const all = indexesOf(collection).flatMap((index) => [index, ...(index.few ? [withoutLastField(name, index)] : [])]);
  const declared = [...new Map(all.map((index) => [index.name, index])).values()];
  for (const index of declared) await makeIndex(db, name, index);
  const present = declared.length === 0 ? [] : await db.collection(name).indexes();
  for (const index of declared) if (!present.some((other) => matches(index, other))) throw differentIndex(db, index);
}

async function makeIndex(db: Db, table: string, index: EngineIndex): Promise<void> {
  const key = index.columns.map((column): [string, 1] => [column, 1]);
  try {
    await tolerateConcurrent(() =>
      db.collection(table).createIndex(key, { name: index.name, ...(index.unique && { unique: true }) }),
    );
  } catch (error) {
    if (!(error instanceof MongoServerError)) throw error;
    if (DIFFERENT.includes(error.code)) throw differentIndex(db, index, error);
    if (error.code === DUPLICATE_KEY)
      throw new StartError(
        `MongoDB cannot make the index "${index.name}" in the database ${db.databaseName}: ` +
          'documents there have equal values',
        { cause: error },
      );
    throw error;
  }
}

const matches = ({ columns, unique }: EngineIndex, other: IndexDescriptionInfo): boolean =>
  Object.entries(other.key).join() === columns.map((column) => [column, 1]).join() &&
  (other.unique ?? false) === unique &&
  other.partialFilterExpression === undefined &&
  !other.sparse &&
  !other.hidden;

const differentIndex = (db: Db, { name }: EngineIndex, cause?: unknown): StartError =>
  new StartError(
    `MongoDB has an index in place of "${name}" in the database ${db.databaseName} that is defined otherwise: ` +
      'drop it and start again',
    { cause },
  );

/**
 * Makes an index or a collection, also when processes that start at the same time make the same one, and when an index
 * takes longer than the socket's time-out.
 */
async function tolerateConcurrent(make: () => Promise<unknown>, tries = 5): Promise<void> {
  try {
    await make();
  } catch (error) {
    // The server continues; a repeated request for the same index waits until it is made.
    if (error instanceof MongoNetworkTimeoutError) return tolerateConcurrent(make, tries);
    if (error instanceof MongoServerError && error.code === NAMESPACE_EXISTS) return;
    if (!(error instanceof MongoServerError) || !CONCURRENT.includes(error.code) || tries === 0) throw error;
    await tolerateConcurrent(make, tries - 1);
  }
}
