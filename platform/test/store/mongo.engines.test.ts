import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { makeLog } from 'platform/core/log.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { insert, update } from 'platform/store/store.ts';
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
