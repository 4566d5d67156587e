import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, DatabaseSync } from 'node:sqlite';
import { lockFile } from 'platform/store/sqlite/file-lock.ts';
import { groupCommit } from 'platform/store/sqlite/group-commit.ts';
import { layoutOf } from 'platform/store/sqlite/layout.ts';
import { bind, findSql } from 'platform/store/sqlite/sql.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, type Collection, type FindOptions } from 'platform/store/store.ts';
import { storeSuite } from './store-suite.ts';
import { COUNTERS, ENTRIES } from './store-writer.ts';

const makeFolder = () => mkdtempSync(join(tmpdir(), 'store-'));

const suiteFolder = makeFolder();
storeSuite('SQLite', {
  open: (collections) => openSqliteStore(join(suiteFolder, 'a.sqlite'), collections),
  empty: async () => rmSync(suiteFolder, { recursive: true }),
});

describe('a SQLite file', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = makeFolder();
    file = join(folder, 'deep', 'a.sqlite');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const startWriter = (round: number) =>
    spawn(process.execPath, [join(import.meta.dirname, 'store-writer.ts'), file, `${round}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });

  it('gives a page for a list of values in the order of any field, such as key', async () => {
    type Named = { _id: string; organizationId: string; group: string; key: string };
    const named = collection<Named>('named', { scope: 'organization', indexes: [{ fields: ['group', 'key'] }] });
    const { store, close } = await openSqliteStore(file, [named]);
    const documents = ['3', '1', '2'].map((key) => ({
      _id: key,
      organizationId: 'A',
      group: key > '1' ? 'g' : 'h',
      key,
    }));
    const inserts = documents.map((document) => insert(named, document));
    await store.apply('A', inserts);
    const page = await store.find('A', named, { group: { in: ['g', 'h'] } }, { sort: [['key', 'asc']], limit: 2 });
    expect(page.map(({ key }) => key)).toEqual(['1', '2']);
    await close();
  });

  it('of a process killed at random moments has every acknowledged batch and no half of one', async () => {
    const seeded = await openSqliteStore(file, [ENTRIES, COUNTERS]);
    await seeded.store.apply('A', [insert(COUNTERS, { _id: 'c', organizationId: 'A', total: 0 })]);
    await seeded.close();
    const acknowledged: string[] = [];
    for (let round = 0; round < 5; round++) {
      const writer = startWriter(round);
      const enough = 1 + Math.floor(Math.random() * 400);
      let text = '';
      await new Promise<void>((closed) => {
        writer.stdout.on('data', (chunk) => {
          text += chunk;
          if (text.split('\n').length > enough) writer.kill('SIGKILL');
        });
        writer.on('close', () => closed());
      });
      expect(writer.signalCode).toBe('SIGKILL');
      acknowledged.push(...text.split('\n').slice(0, -1));
      const { store, close } = await openSqliteStore(file, [ENTRIES, COUNTERS]);
      const stored = new Set((await store.find('A', ENTRIES, {})).map(({ _id }) => _id));
      expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
      expect((await store.findOne('A', COUNTERS, { _id: 'c' }))!.total).toBe(stored.size);
      await close();
    }
    expect(acknowledged.length).toBeGreaterThan(5);
  });

  it('is locked by one process until that process ends', async () => {
    const seeded = await openSqliteStore(file, [ENTRIES, COUNTERS]);
    await seeded.store.apply('A', [insert(COUNTERS, { _id: 'c', organizationId: 'A', total: 0 })]);
    await seeded.close();
    const writer = startWriter(0);
    const ended = new Promise((resolve) => writer.on('close', resolve));
    await new Promise((resolve) => writer.stdout.once('data', resolve));
    writer.stdout.resume();
    await expect(openSqliteStore(file, [ENTRIES])).rejects.toMatchObject({
      name: 'StartError',
      message: `${file} is in use by another process`,
    });
    writer.kill('SIGKILL');
    await ended;
    await (await openSqliteStore(file, [ENTRIES])).close();
  });

  it('can be locked again once it is released', () => {
    const lock = lockFile(file);
    expect(() => lockFile(file)).toThrow(`${file} is in use by another process`);
    lock.release();
    lockFile(file).release();
  });

  it('in a folder that cannot be written, or that is no database, makes the start fail with one clear sentence', async () => {
    writeFileSync(
      join(folder, 'plain'),
      'not a folder and not a database, but long enough to be read as one'.repeat(20),
    );
    await expect(openSqliteStore(join(folder, 'plain', 'x', 'a.sqlite'), [])).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringContaining(`cannot write in the folder ${join(folder, 'plain', 'x')}: `),
    });
    await expect(openSqliteStore('/proc/a.sqlite', [])).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringContaining('cannot write in the folder /proc: '),
    });
    const plain = join(folder, 'plain');
    await expect(openSqliteStore(plain, [])).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringContaining(`cannot open ${plain}: `),
    });
    lockFile(plain).release();
  });

  it('finishes what was started before it closes and rejects what comes later', async () => {
    const { store, close } = await openSqliteStore(file, [ENTRIES]);
    const begun = store.apply('A', [insert(ENTRIES, { _id: '1', organizationId: 'A' })]);
    await close();
    await begun;
    await expect(store.count('A', ENTRIES, {})).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
    const again = await openSqliteStore(file, [ENTRIES]);
    expect(await again.store.count('A', ENTRIES, {})).toBe(1);
    await again.close();
  });

  it('serves a page, its order and its keyset from one index, without sorting', async () => {
    type D = { _id: string; organizationId: string; a: string; b: number };
    const declared = collection<D>('d', {
      scope: 'organization',
      indexes: [{ fields: ['a', 'b'] }],
      platformIndexes: [{ fields: ['b'] }],
    });
    await (await openSqliteStore(file, [declared])).close();
    const db = new DatabaseSync(file);
    const plan = (filter: object, options: FindOptions<D>) => {
      const { text, values } = findSql(layoutOf(declared), filter as Record<string, unknown>, options);
      return db
        .prepare(`EXPLAIN QUERY PLAN SELECT * ${text}`)
        .all(...bind(values, filter as Record<string, unknown>, options as never))
        .map(({ detail }) => detail);
    };
    const equal = `SEARCH d USING INDEX d(organizationId,a,b,_id) (organizationId=? AND a=?`;
    const a = { organizationId: 'A', a: 'x' };
    expect(plan(a, { sort: [['b', 'desc']], limit: 20 })).toEqual([`${equal})`]);
    expect(plan(a, { sort: [['b', 'desc']], after: [3, 'i'], limit: 20 })).toEqual([`${equal} AND b<?)`]);
    expect(plan({ ...a, b: { gt: 1 } }, { sort: [['b', 'asc']] })).toEqual([`${equal} AND b>?)`]);
    expect(plan({ b: { lte: 5 } }, { sort: [['b', 'asc']] })).toEqual(['SEARCH d USING INDEX d(b,_id) (b<?)']);
    db.close();
  });

  it('compiles a statement once, whatever the values and the size of the page', async () => {
    type D = { _id: string; organizationId: string; a: string; b: number };
    const declared = collection<D>('d', { scope: 'organization', indexes: [{ fields: ['a', 'b'] }] });
    await (await openSqliteStore(file, [declared])).close();
    const db = new DatabaseSync(file);
    let compiled = 0;
    db.setAuthorizer(() => {
      compiled += 1;
      return constants.SQLITE_OK;
    });
    const pages: FindOptions<D>[] = [{}, { limit: 3, skip: 2 }, { limit: 3, after: ['i'] }];
    for (const filter of [
      { organizationId: 'A', a: 'x' },
      { organizationId: 'A', a: { in: ['x', 'y'] } },
    ])
      for (const options of pages) {
        const { text, values } = findSql(layoutOf(declared), filter, options);
        const statement = db.prepare(`SELECT * ${text}`);
        const before = compiled;
        for (let limit = 1; limit < 4; limit++)
          statement.all(...bind(values, filter, { ...options, ...(options.limit && { limit }) }));
        expect(compiled).toBe(before);
      }
    db.close();
    expect(compiled).toBeGreaterThan(0);
  });

  it('has a write-ahead log, the declared indexes, and no index that is no longer declared', async () => {
    type D = { _id: string; organizationId: string; a: string; b: number };
    const open = async (declared: Collection<D>) => (await openSqliteStore(file, [declared])).close();
    const inside = <R>(look: (db: DatabaseSync) => R): R => {
      const db = new DatabaseSync(file);
      try {
        return look(db);
      } finally {
        db.close();
      }
    };
    const indexes = () =>
      inside((db) =>
        db
          .prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
          .all()
          .map(({ name }) => name),
      );
    await open(
      collection<D>('d', {
        scope: 'organization',
        indexes: [{ fields: ['a'], unique: true }, { fields: ['a', 'b'] }],
        platformIndexes: [{ fields: ['b'] }],
      }),
    );
    expect(indexes()).toEqual(['d(b,_id)', 'd(organizationId,a) unique', 'd(organizationId,a,b,_id)']);
    await open(collection<D>('d', { scope: 'organization', indexes: [{ fields: ['a'] }] }));
    expect(indexes()).toEqual(['d(organizationId,a,_id)']);
    expect(inside((db) => db.prepare('PRAGMA journal_mode').get())).toEqual({ journal_mode: 'wal' });
  });
});

describe('a group of writes', () => {
  it('is rejected and rolled back as a whole when SQLite fails, and the next group works', async () => {
    const db = new DatabaseSync(':memory:');
    db.exec('CREATE TABLE t (x TEXT); PRAGMA max_page_count = 50');
    const { write } = groupCommit(db);
    const put = (bytes: number) => write(() => db.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(bytes)));
    const results = await Promise.allSettled([put(10), put(1_000_000), put(10)]);
    for (const result of results)
      expect(result).toMatchObject({ status: 'rejected', reason: { reason: 'UNAVAILABLE' } });
    await put(10);
    expect(db.prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: 1 });
    db.close();
  });

  it.each([1, 2, 7, 40])('keeps no part of a write that fails, and all of the others: %s groups', async (groups) => {
    const db = new DatabaseSync(':memory:');
    db.exec('CREATE TABLE t (x TEXT)');
    const { write } = groupCommit(db);
    const put = (x: string, fails: boolean) =>
      write(() => {
        db.prepare('INSERT INTO t VALUES (?)').run(x);
        if (fails) throw new Error(x);
        return x;
      });
    const kept: string[] = [];
    for (let n = 0; n < groups; n++) {
      const fails = [n % 3 === 0, false, n % 5 === 0, n % 7 === 6];
      const writes = fails.map((one, i) => [`${n}.${i}`, one] as const);
      const results = await Promise.allSettled(writes.map(([x, one]) => put(x, one)));
      expect(results).toEqual(
        writes.map(([x, one]) =>
          one ? { status: 'rejected', reason: new Error(x) } : { status: 'fulfilled', value: x },
        ),
      );
      kept.push(...writes.flatMap(([x, one]) => (one ? [] : [x])));
      await expect(put('alone', true)).rejects.toThrow('alone');
    }
    expect(db.prepare('SELECT x FROM t ORDER BY rowid').all()).toEqual(kept.map((x) => ({ x })));
    db.close();
  });

  it('begins anew after a failure, and few of those that follow do so', async () => {
    const db = new DatabaseSync(':memory:');
    const { write } = groupCommit(db);
    let runs = 0;
    for (let n = 0; n < 100; n++) {
      const counted = write(() => ++runs);
      const failing = write(() => {
        throw new Error('refused');
      });
      await Promise.allSettled([counted, failing]);
    }
    expect(runs).toBe(105);
    db.close();
  });

  it('has a limit in bytes; organizations take turns, and each keeps the order of its writes', async () => {
    const db = new DatabaseSync(':memory:');
    const { write } = groupCommit(db);
    const done: string[] = [];
    const turns: number[] = [];
    const put = (organizationId: string, name: string, bytes: number) =>
      write(() => done.push(name), { organizationId, bytes }).then(() => turns.push(done.length));
    const all = [
      ...Array.from({ length: 60 }, (_, i) => put('a', `a${i}`, 262_144)),
      put('b', 'b0', 1_000),
      put('b', 'b1', 1_000),
    ];
    await all[60];
    // The first group: four large writes and both small ones between them.
    expect(done).toEqual(['a0', 'b0', 'a1', 'b1', 'a2', 'a3']);
    await Promise.all(all);
    expect(done.filter((name) => name.startsWith('a'))).toEqual(Array.from({ length: 60 }, (_, i) => `a${i}`));
    expect(new Set(turns).size).toBe(15);
    db.close();
  });

  it('commits all of many groups when the store is closed', async () => {
    const db = new DatabaseSync(':memory:');
    const { write, flush } = groupCommit(db);
    const all = Array.from({ length: 10 }, () => write(() => 1, { organizationId: 'a', bytes: 1_048_576 }));
    flush();
    db.close();
    expect(await Promise.all(all)).toHaveLength(10);
  });

  it('rejects a write after the database is closed, and crashes nothing', async () => {
    const db = new DatabaseSync(':memory:');
    const { write } = groupCommit(db);
    const late = write(() => undefined);
    db.close();
    await expect(late).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
  });
});
