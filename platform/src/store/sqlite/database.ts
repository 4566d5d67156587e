import { DatabaseSync } from 'node:sqlite';

/** Opens or makes a database for writing: write-ahead log, and a commit is on the disk when it returns. */
export function openWriter(file: string): DatabaseSync {
  const db = new DatabaseSync(file);
  try {
    const mode = db.prepare('PRAGMA journal_mode = WAL').get();
    if (mode?.journal_mode !== 'wal')
      throw new Error(`its file system cannot hold a write-ahead log (${String(mode?.journal_mode)})`);
    db.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
