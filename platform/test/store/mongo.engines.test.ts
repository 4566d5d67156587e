import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { makeLog } from 'platform/core/log.ts';
import { applyOps } from 'platform/store/mongo/apply.ts';
import { attemptWatcher } from 'platform/store/mongo/attempts.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { ExpectationFailedError, insert, remove, update, type Op } from 'platform/store/store.ts';
import { item, ITEMS, storeSuite } from './store-suite.ts';

const url = process.env.MONGODB_URL;
if (!url) throw new Error('set MONGODB_URL; npm run engines -- up prints it');
const log = makeLog('test', 'silent');
const admin = new MongoClient(url);
afterAll(() => admin.close());

const suiteDatabase = `suite-${randomUUID()}`;
storeSuite('MongoDB', {
  open: (collections) =>
    openMongoStore({ url, database: suiteDatabase, poolMax: 60, timeoutMs: 60_000, log }, collections),
  async empty() {
    for (const collection of await admin.db(suiteDatabase).collections()) await collection.deleteMany();
  },
});

describe('transactions on MongoDB', () => {
  const database = `aborts-${randomUUID()}`;

  it('on one document are retried until all are done, and each abort is counted', async () => {
    let aborts = 0;
    const { store, close } = await openMongoStore(
      { url, database, poolMax: 60, timeoutMs: 60_000, log, onAbort: () => aborts++ },
      [ITEMS],
    );
    await store.apply('A', [insert(ITEMS, item('hot'))]);
    const writes = 40;
    await Promise.all(
      Array.from({ length: writes }, (_, i) =>
        store.apply('A', [update(ITEMS, { _id: 'hot' }, { increment: { rank: 1 } }), insert(ITEMS, item(`${i}`))]),
      ),
    );
    expect((await store.findOne('A', ITEMS, { _id: 'hot' }))!.rank).toBe(writes);
    expect(await store.count('A', ITEMS, {})).toBe(writes + 1);
    expect(aborts).toBeGreaterThan(0);
    process.stdout.write(
      `${writes} transactions on one document at once: ${(aborts / writes).toFixed(1)} aborts per write\n`,
    );
    await close();
  });
});

describe('a batch on MongoDB', () => {
  const client = new MongoClient(url, { monitorCommands: true });
  const db = client.db(`commands-${randomUUID()}`);
  const upTo64 = Array.from({ length: 64 }, (_, n) => n);
  let started: string[];
  beforeAll(async () => {
    await client.connect();
    await db.createCollection(ITEMS.name);
    client.on('commandStarted', ({ commandName }) => started.push(commandName));
  });
  beforeEach(async () => {
    started = [];
    await db.collection(ITEMS.name).deleteMany();
  });
  afterAll(async () => {
    await db.dropDatabase();
    await client.close();
  });
  const watchAttempts = attemptWatcher(client);
  /** Resolves to the commands that were sent. */
  async function commandsFor(ops: readonly Op[]): Promise<string[]> {
    started = [];
    await applyOps({ client, db, timeoutMs: 60_000, watchAttempts, onAbort: () => undefined }, ops);
    return started;
  }
  const inserts = upTo64.map((n) => insert(ITEMS, item(`${n}`, { rank: n })));
  const idsLeft = async (): Promise<number> => db.collection(ITEMS.name).countDocuments();

  it('has one command for consecutive operations of one kind on one collection', async () => {
    expect(await commandsFor(inserts)).toEqual(['insert', 'commitTransaction']);
    const updates = upTo64.map((n) => update(ITEMS, { _id: `${n}`, rank: n }, { increment: { rank: 1 } }));
    expect(await commandsFor(updates)).toEqual(['update', 'commitTransaction']);
    const [first, ...others] = upTo64.map((n) => remove(ITEMS, { _id: `${n}`, rank: n + 1 }));
    expect(await commandsFor([first!, insert(ITEMS, item('new')), ...others])).toEqual([
      ...['delete', 'insert', 'delete'],
      'commitTransaction',
    ]);
    expect(await idsLeft()).toBe(1);
  });

  it('names the operation whose expectation fails, and writes nothing', async () => {
    await commandsFor(inserts);
    const stale = 41;
    const batches = [
      upTo64.map((n) => remove(ITEMS, { _id: `${n}`, rank: n === stale ? -1 : n })),
      upTo64.map((n) => update(ITEMS, { _id: n === stale ? 'none' : `${n}` }, { set: { text: 'changed' } })),
    ];
    for (const batch of batches) {
      const error: unknown = await commandsFor([insert(ITEMS, item('new')), ...batch]).catch((thrown) => thrown);
      expect(error).toBeInstanceOf(ExpectationFailedError);
      expect((error as ExpectationFailedError).index).toBe(stale + 1);
      expect(await idsLeft()).toBe(64);
    }
    expect(await db.collection(ITEMS.name).countDocuments({ text: 'changed' })).toBe(0);
  });

  it('passes over the documents that optional operations do not find', async () => {
    await commandsFor(inserts);
    const optional = ['none', '1', '2'].map((_id) => remove(ITEMS, { _id }, { optional: true }));
    const conditional = ['none', '3'].map((_id) => remove(ITEMS, { _id, rank: 3 }, { optional: true }));
    const updates = ['none', '4'].map((_id) => update(ITEMS, { _id }, { set: { text: 'x' } }, { optional: true }));
    expect(await commandsFor([...optional, ...conditional, ...updates])).toEqual([
      ...['delete', 'delete', 'update'],
      'commitTransaction',
    ]);
    expect(await idsLeft()).toBe(61);
  });
});
