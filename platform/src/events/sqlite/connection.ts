import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { makeFolder } from '../../core/folder.ts';
import { StartError } from '../../core/start-error.ts';
import { useWriteAheadLog } from '../../store/sqlite/database.ts';

const GIVE_UP_MS = 10_000;

/**
 * A connection to a file that other processes write, too. Nothing waits for their lock inside SQLite, which would stop the
 * event loop: it is tried again later, and rejects with SQLITE_BUSY after 10 s.
 */
export interface SharedConnection {
  readonly db: DatabaseSync;
  read<T>(work: () => T): Promise<T>;
  /** `work` is one durable transaction; it is synchronous and may run several times. */
  write<T>(work: () => T): Promise<T>;
}

/** Opens or makes the file and its folder. @throws StartError when it cannot be used */
export async function openShared(file: string, schema: string): Promise<SharedConnection> {
  let db: DatabaseSync | undefined;
  try {
    makeFolder(dirname(file));
    const open = (db = new DatabaseSync(file, { timeout: 0 }));
    await whenFree(() => useWriteAheadLog(open));
    const connection = connectionOf(open);
    await connection.write(() => open.exec(schema));
    return connection;
  } catch (cause) {
    if (db?.isOpen) db.close();
    throw new StartError(`The event file ${file} cannot be opened: ${(cause as Error).message}`, { cause });
  }
}

const connectionOf = (db: DatabaseSync): SharedConnection => ({
  db,
  read: whenFree,
  write: (work) =>
    whenFree(() => {
      db.exec('BEGIN IMMEDIATE');
      try {
        const result = work();
        db.exec('COMMIT');
        return result;
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK');
        throw error;
      }
    }),
});

const SQLITE_BUSY = 5;
const isBusy = (error: unknown): boolean => ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY;

async function whenFree<T>(work: () => T): Promise<T> {
  const deadline = performance.now() + GIVE_UP_MS;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    await delay(1 + Math.random() * 9);
  }
}
