import { DatabaseSync } from 'node:sqlite';
import { StartError } from '../../core/start-error.ts';
import { lockFile } from './file-lock.ts';
import { groupCommit, isSqliteError, storeUnavailable } from './group-commit.ts';
import type { Engine } from '../engine.ts';
import { checkCollectionNames, openStoreOn } from '../open-store.ts';
import { cutBackLog, LOG_LIMIT_BYTES, openWriter } from './database.ts';
import { makeAggregates } from './aggregates.ts';
import { makeFind } from './find.ts';
import { layoutOf } from './layout.ts';
import { compileOp, originOf } from './ops.ts';
import { compileQueueRemovals, countInQueue, findInQueue, isQueue } from './queue.ts';
import type { Row, Rows } from './rows.ts';
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

  const find = makeFind(rows);
  const aggregates = makeAggregates(rows);

  return {
    system: 'sqlite',
    counterShards: 1,
    exclusive: true,
    find: async (collection, filter, options, turns) =>
      isQueue(collection)
        ? findInQueue(rows, collection, filter, options)
        : find(layoutOf(collection), filter, options, turns),
    count: async (collection, filter, limit, turns) =>
      isQueue(collection)
        ? countInQueue(rows, collection, filter, limit)
        : aggregates.count(layoutOf(collection), filter, limit, turns),
    sum: async (collection, filter, field, turns) => aggregates.sum(layoutOf(collection), filter, field, turns),
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
