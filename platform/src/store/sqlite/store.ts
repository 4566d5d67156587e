import { DatabaseSync } from 'node:sqlite';
import { StartError } from '../../core/start-error.ts';
import { lockFile } from './file-lock.ts';
import { groupCommit, isSqliteError, storeUnavailable } from './group-commit.ts';
import type { Engine } from '../engine.ts';
import { checkCollectionNames, openStoreOn } from '../open-store.ts';
import { cutBackLog, LOG_LIMIT_BYTES, openWriter } from './database.ts';
import { findDocuments, type Rows } from './find.ts';
import { layoutOf, type Layout } from './layout.ts';
import { compileOp, originOf } from './ops.ts';
import { compileQueueRemovals, countInQueue, findInQueue, isQueue } from './queue.ts';
import { knownFields, makeRowReader, type Row, type RowReader } from './rows.ts';
import { fromSql } from './sql.ts';
import { statementCache } from './statements.ts';
import { prepareTables } from './tables.ts';
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
    prepareTables(writer, collections);
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
  const prepareWrite = statementCache(writer, 'arrays');
  const prepareRead = statementCache(reader, 'arrays');

  const rows: Rows = (sql, values) => {
    try {
      return prepareRead(sql).all(...values) as unknown as Row[];
    } catch (error) {
      throw isSqliteError(error) ? storeUnavailable(error) : error;
    }
  };

  const readers = new Map<string, RowReader>();
  function readerOf(layout: Layout, filter: Readonly<Record<string, unknown>>): RowReader {
    const known = knownFields(layout, filter);
    const name = `${layout.name}(${known.join()})`;
    let reader = readers.get(name);
    if (reader === undefined) readers.set(name, (reader = makeRowReader(layout, known)));
    return reader;
  }

  return {
    counterShards: 1,
    exclusive: true,
    async find(collection, filter, options, inTurn) {
      if (isQueue(collection)) return findInQueue(rows, collection, filter, options);
      const layout = layoutOf(collection);
      return findDocuments(rows, { layout, reader: readerOf(layout, filter) }, filter, options, inTurn);
    },
    async count(collection, filter) {
      if (isQueue(collection)) return countInQueue(rows, collection, filter);
      const layout = layoutOf(collection);
      const from = fromSql(layout, filter);
      const [[count]] = rows(`SELECT count(*) ${from.text}`, from.values) as [[number]];
      return count;
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
