import { MongoServerError, type Db, type MongoClient } from 'mongodb';
import { newId } from '../../core/ids.ts';
import type { Log } from '../../core/log.ts';
import { applyOps } from './apply.ts';
import { watchAttempts } from './attempts.ts';
import { checked, connectMongo, type MongoSettings } from './connect.ts';
import { withMongoTimeout, DUPLICATE_KEY, faultOf } from './faults.ts';
import { mongoFilter, mongoFind, type Stored } from './filter.ts';
import { prepareCollections } from './indexes.ts';
import { checkNames, storeOver, type Engine } from '../open-store.ts';
import type { Collection, OpenStore } from '../store.ts';

export interface MongoOptions extends MongoSettings {
  log: Log;
  /** Called each time that a batch was aborted by another and is tried again. */
  onAbort?: () => void;
}

/** Rows of a contended counter: transactions on one document abort each other. */
const COUNTER_SHARDS = 64;
/** An index over many documents takes its time. */
const PREPARE_MS = 60_000;

/**
 * The document store on MongoDB: a database of a replica set or a sharded cluster.
 * @throws StartError when it cannot be reached or used, or an index there is not as declared
 */
export async function openMongoStore(
  { log, onAbort = () => undefined, ...settings }: MongoOptions,
  collections: readonly Collection<never>[],
): Promise<OpenStore> {
  checkNames(collections);
  const { client, target } = await connectMongo(settings);
  try {
    const db = client.db(settings.database);
    await checked(target, () => probe(client, db, collections));
    await checked(target, () => prepareCollections(db, collections, PREPARE_MS), 2 * PREPARE_MS);
    watchServers(client, log);
    return storeOver(engineOn(client, db, settings.timeoutMs, onAbort), collections);
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Asks for the privileges of writing and reading. The row is never seen: its transaction is not committed. */
async function probe(client: MongoClient, db: Db, collections: readonly Collection<never>[]): Promise<void> {
  const [first] = collections;
  if (first === undefined) return;
  const nobody = { _id: '' };
  const to = db.collection<Stored>(first.name);
  await to.updateOne(nobody, { $set: { probe: 1 } });
  await to.deleteOne(nobody);
  await to.findOne(nobody);
  await client.withSession(async (session) => {
    session.startTransaction();
    await to.insertOne({ _id: newId() }, { session }).catch(unlessMet);
    await session.abortTransaction();
  });
}

/** Whoever meets another, for example the probe of a replica, was allowed to write. */
function unlessMet(error: unknown): void {
  const met =
    error instanceof MongoServerError &&
    (error.code === DUPLICATE_KEY || error.hasErrorLabel('TransientTransactionError'));
  if (!met) throw error;
}

function watchServers(client: MongoClient, log: Log): void {
  client.on('serverDescriptionChanged', ({ address, previousDescription: before, newDescription: now }) => {
    if (now.type === before.type) return;
    if (now.type === 'Unknown') log.warn({ address, error: now.error }, 'MongoDB server lost');
    else log.info({ address, type: now.type }, 'MongoDB server found');
  });
}

function engineOn(client: MongoClient, db: Db, timeoutMs: number, onAbort: () => void): Engine {
  const applying = { client, db, timeoutMs, attemptsOf: watchAttempts(client), onAbort };
  const begun = new Set<Promise<unknown>>();

  /** What `close` waits for. */
  function tracked<T>(work: Promise<T>): Promise<T> {
    begun.add(work);
    return work.finally(() => begun.delete(work));
  }

  const read = <T>(work: () => Promise<T>): Promise<T> =>
    tracked(
      withMongoTimeout(work(), timeoutMs).catch((error: unknown) => {
        throw faultOf(error, 'no');
      }),
    );

  return {
    counterShards: COUNTER_SHARDS,
    exclusive: false,
    async find(collection, filter, options) {
      const { where, ...order } = mongoFind(filter, options);
      return read(() => db.collection<Stored>(collection.name).find(where, order).toArray());
    },
    async count(collection, filter) {
      const where = mongoFilter(filter);
      return read(() => db.collection<Stored>(collection.name).countDocuments(where));
    },
    apply: (ops) => tracked(applyOps(applying, ops)),
    now: () => read(async () => ((await db.admin().command({ hello: 1 })).localTime as Date).getTime()),
    async close() {
      await Promise.allSettled(begun);
      await client.close();
    },
  };
}
