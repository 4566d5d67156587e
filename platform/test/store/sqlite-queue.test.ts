import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, remove, type OpenStore } from 'platform/store/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';

interface Letter {
  _id: string;
  topic: string;
  text: string;
}
const LETTERS = collection<Letter>('letters', { scope: 'platform', queue: ['topic', 'text'] });

describe('a queue on SQLite', () => {
  const folder = temporaryFolder();
  let file: string;
  let files = 0;
  let opened: OpenStore | undefined;
  const open = async (): Promise<OpenStore> => (opened = await openSqliteStore(file, [LETTERS]));
  beforeEach(() => {
    file = join(folder.path, `${++files}.db`);
  });
  afterEach(() => opened?.close());
  afterAll(() => folder.remove());

  const texts = (letters: readonly Letter[]): string[] => letters.map(({ text }) => text);
  const letter = (text: string, topic = 'a') => insert(LETTERS, { _id: `id of ${text}`, topic, text });

  it('has the order of commit, whatever the ids that the writers give', async () => {
    const { platformStore } = await open();
    await platformStore.apply([letter('9'), letter('2', 'b')]);
    await Promise.all([platformStore.apply([letter('5')]), platformStore.apply([letter('1', 'b')])]);
    const all = await platformStore.find(LETTERS, {});
    expect(texts(all)).toEqual(['9', '2', '5', '1']);
    expect(texts(await platformStore.find(LETTERS, { topic: { in: ['b', 'c'] } }))).toEqual(['2', '1']);
    expect(texts(await platformStore.find(LETTERS, { _id: { gt: all[1]!._id } }, { limit: 1 }))).toEqual(['5']);
    expect(await platformStore.count(LETTERS, { topic: 'a' })).toBe(2);
    expect(await platformStore.count(LETTERS, {}, { limit: 3 })).toBe(3);
    expect(await platformStore.count(LETTERS, { topic: 'a' }, { limit: 3 })).toBe(2);
    await expect(platformStore.find(LETTERS, {}, { sort: [['text', 'asc']] })).rejects.toThrow(TypeError);
  });

  it('writes nothing of a batch that fails', async () => {
    const { platformStore } = await open();
    const failing = platformStore.apply([letter('1'), remove(LETTERS, { _id: '1', topic: 'a' }, { optional: true })]);
    await expect(failing).rejects.toThrow(TypeError);
    expect(await platformStore.count(LETTERS, {})).toBe(0);
  });

  it('removes a batch with one statement, and passes over what is removed already', async () => {
    const { platformStore } = await open();
    await platformStore.apply(Array.from({ length: 500 }, (_, n) => letter(`${n}`)));
    const batch = await platformStore.find(LETTERS, {}, { limit: 499 });
    const { run } = StatementSync.prototype;
    const deletions: string[] = [];
    StatementSync.prototype.run = new Proxy(run, {
      apply(target, statement: StatementSync, values) {
        if (statement.sourceSQL.startsWith('DELETE')) deletions.push(statement.sourceSQL);
        return Reflect.apply(target, statement, values);
      },
    });
    const removals = batch.map(({ _id }) => remove(LETTERS, { _id }, { optional: true }));
    await platformStore.apply(removals).finally(() => Object.assign(StatementSync.prototype, { run }));
    expect(deletions).toHaveLength(1);
    await platformStore.apply(removals);
    expect(texts(await platformStore.find(LETTERS, {}))).toEqual(['499']);
  });

  it('never gives a new document the _id of a removed one', async () => {
    const { platformStore } = await open();
    await platformStore.apply([letter('1'), letter('2')]);
    const before = await platformStore.find(LETTERS, {});
    const removals = before.map(({ _id }) => remove(LETTERS, { _id }, { optional: true }));
    await platformStore.apply(removals);
    await opened!.close();
    const again = (await open()).platformStore;
    await again.apply([letter('3')]);
    await again.apply(removals);
    expect(texts(await again.find(LETTERS, {}))).toEqual(['3']);
  });

  it('of a release that stored it as documents keeps them, in the order of their ids', async () => {
    const old = new DatabaseSync(file);
    old.exec(`CREATE TABLE letters (id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL);
      CREATE INDEX "letters(topic,_id)" ON letters(json_extract(doc,'$.topic'), id)`);
    for (const n of [3, 1, 2]) {
      const document = { _id: `${n}`, topic: 'a', text: `"${n}"\u0000`, shape: 1 };
      old.prepare('INSERT INTO letters (id, doc) VALUES (?, ?)').run(document._id, JSON.stringify(document));
    }
    old.close();
    const { platformStore } = await open();
    await platformStore.apply([letter('new')]);
    expect(texts(await platformStore.find(LETTERS, {}))).toEqual(['"1"\u0000', '"2"\u0000', '"3"\u0000', 'new']);
    using db = new DatabaseSync(file, { readOnly: true });
    expect(db.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'letters%'").all()).toEqual([
      { name: 'letters' },
    ]);
  });
});
