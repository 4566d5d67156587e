import { MongoServerError, type Db, type MongoClient } from 'mongodb';
import { newId } from '../../core/ids.ts';
import type { Log } from '../../core/log.ts';
import { applyOps } from './apply.ts';
import { attemptWatcher } from './attempts.ts';
import { connectMongo, withStartErrors, type MongoSettings } from './connect.ts';
import { DUPLICATE_KEY, serviceErrorOf, withMongoTimeout } from './errors.ts';
import type { Stored } from './filter.ts';
import { aggregateDocuments, findDocuments, type Reading } from './find.ts';
import { prepareCollections } from './prepare-collections.ts';
import type { Engine } from '../engine.ts';
import { checkCollectionNames, openStoreOn } from '../open-store.ts';
import type { Collection, OpenStore } from '../store.ts';
import type { Turns } from '../turns.ts';

export interface MongoOptions extends MongoSettings {
  log: Log;
  /** Called each time that a transaction was aborted by another one and is tried again. */
  onAbort?: () => void;
}

/** See OpenStore.counterShards: concurrent transactions on one document abort each other. */
const COUNTER_SHARDS = 64;
/** An index over many documents takes long to make. */
const PREPARE_MS = 60_000;

/**
 * The document store on MongoDB: a database of a replica set or a sharded cluster.
 * @throws StartError when MongoDB cannot be reached or used, or an index there is not as declared
 */
export async function openMongoStore(
  { log, onAbort = () => undefined, ...settings }: MongoOptions,
  collections: readonly Collection<never>[],
): Promise<OpenStore> {
  checkCollectionNames(collections);
  const { client, target } = await connectMongo(settings);
  try {
    const db = client.db(settings.database);
    await withStartErrors(target, () => checkPrivileges(client, db, collections));
    await withStartErrors(target, () => prepareCollections(db, collections, PREPARE_MS), 2 * PREPARE_MS);
    logServerChanges(client, log);
    return openStoreOn(makeEngine(client, db, settings.timeoutMs, onAbort), collections);
  } catch (error) {
    await client.close();
    throw error;
  }
}

/**
 * Checks that the user may insert, update, delete and find, by doing each once. The inserted document is never
 * visible: its transaction is aborted.
 */
async function checkPrivileges(client: MongoClient, db: Db, collections: readonly Collection<never>[]): Promise<void> {
  const [first] = collections;
  if (first === undefined) return;
  const noDocument = { _id: '' };
  const collection = db.collection<Stored>(first.name);
  await collection.updateOne(noDocument, { $set: { probe: 1 } });
  await collection.deleteOne(noDocument);
  await collection.findOne(noDocument);
  await client.withSession(async (session) => {
    session.startTransaction();
    await collection.insertOne({ _id: newId() }, { session }).catch(ignoreConflict);
    await session.abortTransaction();
  });
}

/** A conflict, for example with the same check of another replica, shows that the write was allowed. */
function ignoreConflict(error: unknown): void {
  const isConflict =
    error instanceof MongoServerError &&
    (error.code === DUPLICATE_KEY || error.hasErrorLabel('TransientTransactionError'));
  if (!isConflict) throw error;
}

function logServerChanges(client: MongoClient, log: Log): void {
  client.on('serverDescriptionChanged', ({ address, previousDescription: before, newDescription: now }) => {
    if (now.type === before.type) return;
    if (now.type === 'Unknown') log.warn({ address, error: now.error }, 'MongoDB server lost');
    else log.info({ address, type: now.type }, 'MongoDB server found');
  });
}

function makeEngine(client: MongoClient, db: Db, timeoutMs: number, onAbort: () => void): Engine {
  const options = { client, db, timeoutMs, watchAttempts: attemptWatcher(client), onAbort };
  const pending = new Set<Promise<unknown>>();

  /** `close` waits for it. */
  function tracked<T>(work: Promise<T>): Promise<T> {
    pending.add(work);
    return work.finally(() => pending.delete(work));
  }

  const read = <T>(work: () => Promise<T>): Promise<T> =>
    tracked(
      withMongoTimeout(work(), timeoutMs).catch((error: unknown) => {
        throw serviceErrorOf(error, 'nothing written');
      }),
    );

  const readingOf = ({ name }: Collection<never>, filter: Reading['filter'], turns: Turns): Reading => ({
    ...{ collection: db.collection<Stored>(name), filter, read, turns },
  });

  return {
    system: 'mongodb',
    counterShards: COUNTER_SHARDS,
    exclusive: false,
    find: (collection, filter, options, turns) => findDocuments(readingOf(collection, filter, turns), options),
    count: (collection, filter, limit, turns) => aggregateDocuments(readingOf(collection, filter, turns), { limit }),
    sum: (collection, filter, field, turns) => aggregateDocuments(readingOf(collection, filter, turns), { field }),
    apply: (ops) => tracked(applyOps(options, ops)),
    now: () => read(async () => ((await db.admin().command({ hello: 1 })).localTime as Date).getTime()),
    async close() {
      await Promise.allSettled(pending);
      await client.close();
    },
  };
}
