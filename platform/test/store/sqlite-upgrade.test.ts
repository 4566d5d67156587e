import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { newId } from 'platform/core/ids.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, type Collection } from 'platform/store/store.ts';
import { item, ITEMS, type Item } from './store-suite.ts';

/** Makes the file as the first release did: one JSON text for each document, and indexes on its fields. */
function writeFirstRelease(file: string, documents: readonly { _id: string }[], name = ITEMS.name): void {
  const db = new DatabaseSync(file);
  db.exec(
    `PRAGMA journal_mode = WAL; BEGIN; CREATE TABLE "${name}" (id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL);
     CREATE UNIQUE INDEX "${name}(organizationId,group,key) unique" ON "${name}"(json_extract(doc,'$.organizationId'),
       json_extract(doc,'$.group'), json_extract(doc,'$.key'));
     CREATE INDEX "${name}(rank,_id)" ON "${name}"(json_extract(doc,'$.rank'), id);`,
  );
  const write = db.prepare(`INSERT INTO "${name}" VALUES (?, ?)`);
  for (const document of documents) write.run(document._id, JSON.stringify({ ...document, shape: 1 }));
  db.exec('COMMIT');
  db.close();
}

describe('a SQLite file of another release', () => {
  const folder = temporaryFolder();
  let file: string;
  beforeEach(() => void (file = join(folder.path, `${newId()}.db`)));
  afterAll(() => folder.remove());
  const schema = (): unknown[] => {
    const db = new DatabaseSync(file);
    const rows = db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all();
    db.close();
    return rows;
  };
  async function read(declared: Collection<Item> = ITEMS): Promise<Item[]> {
    const { platformStore, close } = await openSqliteStore(file, [declared]);
    return platformStore.find(declared, {}).finally(close);
  }

  const written = [
    item('1', { note: null, flag: true, rank: -1.5, text: '"\\\u0000\u2028😀' }),
    item('2', { key: newId(), text: 'é'.repeat(100_000) }),
    item('3', { organizationId: newId(), note: newId(), rank: Number.MAX_VALUE, parts: [] }),
    { ...item('4', { tags: ['a', 'b'] }), later: { deep: [null, 1] } },
  ];

  it('has the same documents after the start, and the declared tables and indexes alone', async () => {
    writeFirstRelease(file, written);
    expect(await read()).toStrictEqual(written);
    const upgraded = schema();
    const fresh = file;
    file = `${fresh}2`;
    await read();
    expect(upgraded).toEqual(schema());
    file = fresh;
    const { store, close } = await openSqliteStore(file, [ITEMS]);
    expect(await store.count('A', ITEMS, { tags: { containsAny: ['b'] } })).toBe(1);
    await expect(store.apply('A', [insert(ITEMS, item('5', { key: '1' }))])).rejects.toMatchObject({
      fields: ['group', 'key'],
    });
    await close();
  });

  it('has the same documents when fields get a column, lose it, or hold something else', async () => {
    writeFirstRelease(file, written);
    const columns = (given: Collection<Item>['columns']): Collection<Item> =>
      collection<Item>('items', { scope: 'organization', columns: given });
    const kinds: Collection<Item>['columns'][] = [
      { text: 'text', rank: 'number' },
      { key: 'long', note: 'id' },
      {},
      { key: 'text' },
    ];
    for (const given of kinds) {
      const declared = columns(given);
      expect(await read(declared)).toStrictEqual(written);
      const { platformStore, close } = await openSqliteStore(file, [declared]);
      expect(await platformStore.count(declared, { key: written[1]!.key })).toBe(1);
      await close();
    }
  });

  it('keeps a table whose columns have another order only, because an index is gone', async () => {
    const declare = (fields: (keyof Item & string)[]): Collection<Item> =>
      collection<Item>('items', {
        scope: 'organization',
        columns: { rank: 'number', key: 'text' },
        platformIndexes: fields.map((field) => ({ fields: [field] })),
      });
    const table = () => schema().find((one) => (one as { name: string }).name === 'items');
    const [before, after] = [declare(['key']), declare([])];
    const opened = await openSqliteStore(file, [before]);
    await opened.platformStore.apply(written.map((document) => insert(before, document)));
    await opened.close();
    const tableBefore = table();
    const { platformStore, close } = await openSqliteStore(file, [after]);
    await platformStore.apply([insert(after, item('5', { key: 'new', rank: 7 }))]);
    expect(await platformStore.find(after, {})).toStrictEqual([...written, item('5', { key: 'new', rank: 7 })]);
    expect(await platformStore.count(after, { key: 'new', rank: 7 })).toBe(1);
    await close();
    expect(table()).toEqual(tableBefore);
    const fresh = file;
    file = `${fresh}2`;
    await read(after);
    expect(table()).not.toEqual(tableBefore);
  });

  it('has UUIDs in lower case where a field holds ids, although the first release took any case', async () => {
    const [_id, note] = [newId(), newId()];
    writeFirstRelease(file, [item(_id.toUpperCase(), { note: note.toUpperCase() })]);
    const declared = collection<Item>('items', { scope: 'organization', columns: { _id: 'id', note: 'id' } });
    expect(await read(declared)).toMatchObject([{ _id, note }]);
  });

  it('stays as it was when the upgrade fails', async () => {
    writeFirstRelease(file, written);
    const broken = new DatabaseSync(file);
    broken.exec(`DROP INDEX "items(rank,_id)"; DROP INDEX "items(organizationId,group,key) unique";
      INSERT INTO items VALUES ('5', '{')`);
    broken.close();
    const before = schema();
    await expect(read()).rejects.toMatchObject({ name: 'StartError', message: expect.stringContaining(file) });
    expect(schema()).toEqual(before);
    const db = new DatabaseSync(file);
    db.exec("DELETE FROM items WHERE id = '5'");
    db.close();
    expect(await read()).toStrictEqual(written);
  });

  it('has every document after its process was killed during the upgrade', async () => {
    const documents = Array.from({ length: 20_000 }, (_, n) => item(`${100_000 + n}`, { text: 'x'.repeat(300) }));
    writeFirstRelease(file, documents);
    const child = [join(import.meta.dirname, 'upgrade-child.ts'), file];
    expect(spawnSync(process.execPath, child, { stdio: 'inherit' }).signal).toBe('SIGKILL');
    // What did not fit into the cache is in the log, not committed.
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(1_000_000);
    expect(await read()).toEqual(documents);
  });
});
