import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { LOCKED_AT_MOST_MS } from './group-commit.ts';
import { noteRelease } from './written-by.ts';

/** SQLite empties the log whenever it has grown by 4 MiB and nobody reads an older state of the database. */
export const LOG_LIMIT_BYTES = 16 * 1_048_576;

/**
 * Turns on the write-ahead log with a sync to disk per commit: what is committed survives a power loss. The log grows
 * while somebody reads an older state of the database; the first write after that cuts it back to LOG_LIMIT_BYTES.
 * @throws Error when the file system does not support a write-ahead log
 */
export function useWriteAheadLog(db: DatabaseSync): void {
  const mode = db.prepare('PRAGMA journal_mode = WAL').get();
  if (mode?.journal_mode !== 'wal')
    throw new Error(`its file system cannot hold a write-ahead log (${String(mode?.journal_mode)})`);
  db.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${LOG_LIMIT_BYTES}`);
}

/**
 * Opens or creates a database for writing. It waits while a backup locks the file.
 * @throws Error when it cannot, or may not (written-by.ts)
 */
export function openWriter(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: LOCKED_AT_MOST_MS });
  try {
    useWriteAheadLog(db);
    noteRelease(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Empties a write-ahead log that is larger than LOG_LIMIT_BYTES, for a database to which nobody writes any more.
 * @returns the size of the log in bytes; above the limit when somebody still reads an older state
 */
export function cutBackLog(db: DatabaseSync, file: string): number {
  const sizeOf = (): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (sizeOf() > LOG_LIMIT_BYTES) db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  return sizeOf();
}
