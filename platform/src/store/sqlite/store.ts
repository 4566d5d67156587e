import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { StartError } from '../../core/start-error.ts';
import { lockFile } from './file-lock.ts';
import { groupCommit, isSqliteError, storeUnavailable } from './group-commit.ts';
import type { Engine } from '../engine.ts';
import { checkCollectionNames, openStoreOn } from '../open-store.ts';
import { cutBackLog, LOG_LIMIT_BYTES, openWriter } from './database.ts';
import { compileOp, originOf, statementCache } from './ops.ts';
import { createTables } from './tables.ts';
import { compileQueueRemovals, countInQueue, findInQueue, isQueue } from './queue.ts';
import { findDocuments, type Rows } from './find.ts';
import { whereSql } from './sql.ts';
import type { Collection, OpenStore } from '../store.ts';

/**
 * The embedded engine of the document store: one SQLite file, locked by this process until `close`.
 * @param file path of the database; `<file>-wal`, `<file>-shm` and `<file>.lock` are in the same folder
 * @throws StartError when another process has the file open or it cannot be opened
 */
export async function openSqliteStore(file: string, collections: readonly Collection<never>[]): Promise<OpenStore> {
  checkCollectionNames(collections);
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
    // A connection of its own, so that a read never sees uncommitted data.
    const reader = new DatabaseSync(file, { readOnly: true });
    connections.push(reader);
    reader.exec('PRAGMA cache_size = -16384');
    return openStoreOn(makeEngine({ file, writer, reader, closeFiles }), collections);
  } catch (cause) {
    closeFiles();
    throw new StartError(`cannot open ${file}: ${(cause as Error).message}`, { cause });
  }
}

interface OpenFile {
  file: string;
  writer: DatabaseSync;
  reader: DatabaseSync;
  closeFiles(): void;
}

function makeEngine({ file, writer, reader, closeFiles }: OpenFile): Engine {
  const commits = groupCommit(writer);
  const prepareWrite = statementCache(writer);
  const prepareRead = statementCache(reader);

  const select = (sql: string, values: SQLInputValue[]): Record<string, unknown>[] => {
    try {
      return prepareRead(sql).all(...values);
    } catch (error) {
      throw isSqliteError(error) ? storeUnavailable(error) : error;
    }
  };
  const rows: Rows = (table, selected, { text, values }) =>
    select(`SELECT ${selected} FROM "${table}" ${text}`, values);

  return {
    counterShards: 1,
    exclusive: true,
    find: async (collection, filter, options, inTurn) =>
      isQueue(collection)
        ? findInQueue(select, collection, filter, options)
        : findDocuments(rows, collection.name, filter, options, inTurn),
    async count(collection, filter) {
      if (isQueue(collection)) return countInQueue(select, collection, filter);
      const { name } = collection;
      const where = whereSql(filter);
      return rows(name, 'count(*) AS n', { ...where, text: `WHERE ${where.text}` })[0]!.n as number;
    },
    async apply(ops) {
      const removals = compileQueueRemovals(prepareWrite, ops);
      const work = removals ? [removals] : ops.map((op, index) => compileOp(prepareWrite, op, index));
      await commits.write(() => work.forEach((run) => run()), originOf(ops));
    },
    now: async () => Date.now(),
    cutBackLog: async () => Math.max(0, cutBackLog(writer, file) - LOG_LIMIT_BYTES),
    async close() {
      commits.flush();
      closeFiles();
    },
  };
}
