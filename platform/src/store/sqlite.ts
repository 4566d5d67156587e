import { DatabaseSync } from 'node:sqlite';
import { ServiceError } from '../errors.ts';
import { StartError } from '../start-error.ts';
import { lockFile } from './file-lock.ts';
import { groupCommit, isEngineFault, unavailable } from './group-commit.ts';
import { openWriter } from './sqlite-database.ts';
import { compile, statementCache } from './sqlite-ops.ts';
import { createTables } from './sqlite-schema.ts';
import { findSql, whereSql, type Sql } from './sqlite-sql.ts';
import type { Collection, FindOptions, Op, OpenStore, PlatformStore, Store } from './store.ts';
import { confined, within } from './tenancy.ts';

type Filter = Readonly<Record<string, unknown>>;

/**
 * The embedded engine of the document store: one SQLite file, owned by this process until `close`.
 * @param file path of the database; `-wal`, `-shm` and `.lock` stand beside it
 * @throws StartError when another process owns the file or it cannot be opened
 */
export async function openSqliteStore(file: string, collections: readonly Collection<never>[]): Promise<OpenStore> {
  for (const one of collections) if (collections.some((other) => other.name === one.name && other !== one)) throw new TypeError(`two collections are named ${one.name}`);
  const lock = lockFile(file);
  const connections: DatabaseSync[] = [];
  const closeFiles = (): void => {
    for (const connection of connections.reverse()) connection.close();
    lock.release();
  };
  try {
    const writer = openWriter(file);
    connections.push(writer);
    createTables(writer, collections);
    // Apart from the writer, so that a read cannot see what is not committed.
    const reader = new DatabaseSync(file, { readOnly: true });
    connections.push(reader);
    reader.exec('PRAGMA cache_size = -16384');
    return storeOn(writer, reader, collections, closeFiles);
  } catch (cause) {
    closeFiles();
    throw new StartError(`cannot open ${file}: ${(cause as Error).message}`, { cause });
  }
}

function storeOn(writer: DatabaseSync, reader: DatabaseSync, collections: readonly Collection<never>[], closeFiles: () => void): OpenStore {
  const names = new Set(collections.map((collection) => collection.name));
  const commits = groupCommit(writer);
  const toWrite = statementCache(writer);
  const toRead = statementCache(reader);
  let closed = false;

  function checkOpen(collection: { readonly name: string }): void {
    if (closed) throw new ServiceError('UNAVAILABLE', 'The document store is closed');
    if (!names.has(collection.name)) throw new TypeError(`the store was not opened with the collection ${collection.name}`);
  }

  function rows(collection: { readonly name: string }, select: string, { text, values }: Sql): Record<string, unknown>[] {
    checkOpen(collection);
    try {
      return toRead(`SELECT ${select} FROM "${collection.name}" ${text}`).all(...values);
    } catch (error) {
      throw isEngineFault(error) ? unavailable(error) : error;
    }
  }

  async function find<D>(collection: { readonly name: string }, filter: Filter, options: FindOptions<D> = {}): Promise<D[]> {
    return rows(collection, 'doc', findSql(filter, options)).map((row) => JSON.parse(row.doc as string) as D);
  }

  async function count(collection: { readonly name: string }, filter: Filter): Promise<number> {
    const where = whereSql(filter);
    return rows(collection, 'count(*) AS n', { ...where, text: `WHERE ${where.text}` })[0]!.n as number;
  }

  async function apply(ops: readonly Op[]): Promise<void> {
    const work = ops.map((op, index) => {
      checkOpen(op.collection);
      return compile(toWrite, op, index);
    });
    if (work.length > 0) await commits.write(() => work.forEach((run) => run()));
  }

  const platformStore: PlatformStore = {
    findOne: async (collection, filter) => (await find<never>(collection, filter, { limit: 1 }))[0],
    find,
    count,
    apply,
    now: async () => Date.now(),
  };
  const store: Store = {
    findOne: async (organizationId, collection, filter) => (await find<never>(collection, within(organizationId, collection, filter), { limit: 1 }))[0],
    find: async (organizationId, collection, filter, options) => find(collection, within(organizationId, collection, filter), options),
    count: async (organizationId, collection, filter) => count(collection, within(organizationId, collection, filter)),
    apply: async (organizationId, ops) => apply(ops.map((op) => confined(organizationId, op))),
  };
  return {
    store, platformStore, hotRows: 1, exclusive: true,
    async close() {
      if (closed) return;
      closed = true;
      commits.flush();
      closeFiles();
    },
  };
}
