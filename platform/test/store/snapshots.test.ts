import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { temporaryFolder } from 'platform/service/testing.ts';
import { useWriteAheadLog } from 'platform/store/sqlite/database.ts';
import { isLocked, lockFile } from 'platform/store/sqlite/file-lock.ts';
import { takeSnapshots } from 'platform/store/sqlite/snapshots.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert } from 'platform/store/store.ts';

const TEXTS = collection<{ _id: string; organizationId: string }>('texts', { scope: 'organization' });

/** Writes a row to one file, and when that is durable one to the other, and so on. */
const WRITER = `
  const { DatabaseSync } = require('node:sqlite');
  const { parentPort, workerData } = require('node:worker_threads');
  const inserts = workerData.map((file) => {
    const db = new DatabaseSync(file, { timeout: 10_000 });
    return db.prepare('INSERT INTO t DEFAULT VALUES');
  });
  for (let n = 0; ; n++) {
    for (const insert of inserts) insert.run();
    if (n === 0) parentPort.postMessage('begun');
  }`;

describe('snapshots of several databases', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  const path = (name: string): string => join(folder.path, name);
  beforeEach(() => (folder = temporaryFolder()));
  afterEach(() => folder.remove());

  it('are of one instant, and are copied as they were, while another process writes one file after the other', async () => {
    const files = ['cause.db', 'effect.db'].map(path);
    for (const file of files) {
      using db = new DatabaseSync(file);
      useWriteAheadLog(db);
      db.exec('CREATE TABLE t (n INTEGER PRIMARY KEY)');
    }
    const writer = new Worker(WRITER, { eval: true, workerData: files });
    await once(writer, 'message');
    const seen = new Set<number>();
    for (let turn = 0; seen.size < 20; turn++) {
      // the file of the effect first: read one after the other, without a lock, it would be behind
      const { files: taken, close } = await takeSnapshots([files[1]!, files[0]!]);
      const [effects, causes] = taken.map((one) => one.rows().t!) as [number, number];
      expect([causes, causes - 1]).toContain(effects);
      seen.add(causes);
      if (turn % 10 === 0) {
        await taken[1]!.copyTo(path(`copy-${turn}`));
        using copy = new DatabaseSync(path(`copy-${turn}`));
        expect(copy.prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: causes });
        expect(statSync(path(`copy-${turn}`)).mode & 0o777).toBe(0o600);
      }
      close();
    }
    await writer.terminate();
  });

  it('hold up the writes of a store and refuse none', async () => {
    const file = path('a.db');
    const opened = await openSqliteStore(file, [TEXTS]);
    const lock = new DatabaseSync(file);
    lock.exec('BEGIN IMMEDIATE');
    let written = 0;
    const writes = ['1', '2'].map((_id) =>
      opened.store.apply('A', [insert(TEXTS, { _id, organizationId: 'A' })]).then(() => written++),
    );
    // turns of the event loop, in the first of which it tries and cannot
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    expect(written).toBe(0);
    lock.close();
    await Promise.all(writes);
    expect(await opened.store.count('A', TEXTS, {})).toBe(2);
    await opened.close();
  });

  it('are refused for what is missing or is no database, and leave nothing locked', async () => {
    const file = path('a.db');
    const opened = await openSqliteStore(file, [TEXTS]);
    await expect(takeSnapshots([file, path('b.db')])).rejects.toThrow(`There is no ${path('b.db')}`);
    writeFileSync(path('b.db'), 'x'.repeat(10_000));
    await expect(takeSnapshots([file, path('b.db')])).rejects.toThrow(
      `${path('b.db')} cannot be read: file is not a database`,
    );
    await opened.store.apply('A', [insert(TEXTS, { _id: '1', organizationId: 'A' })]);
    await opened.close();
  });
});

it('a lock is seen by others while it is held', () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'a');
  expect(isLocked(path)).toBe(false);
  const { release } = lockFile(path);
  expect(isLocked(path)).toBe(true);
  release();
  expect(isLocked(path)).toBe(false);
  folder.remove();
});
