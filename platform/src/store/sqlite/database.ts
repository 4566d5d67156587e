import { DatabaseSync } from 'node:sqlite';

/**
 * Turns on the write-ahead log with a sync to disk per commit: what is committed survives a power loss.
 * @throws Error when the file system does not support a write-ahead log
 */
export function useWriteAheadLog(db: DatabaseSync): void {
  const mode = db.prepare('PRAGMA journal_mode = WAL').get();
  if (mode?.journal_mode !== 'wal')
    throw new Error(`its file system cannot hold a write-ahead log (${String(mode?.journal_mode)})`);
  db.exec('PRAGMA synchronous = FULL');
}

/** Opens or creates a database for writing. */
export function openWriter(file: string): DatabaseSync {
  const db = new DatabaseSync(file);
  try {
    useWriteAheadLog(db);
    db.exec('PRAGMA journal_size_limit = 67108864');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
