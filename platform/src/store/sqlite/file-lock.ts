import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder, requireOwnFolder } from '../../core/folder.ts';
import { StartError } from '../../core/start-error.ts';

const SQLITE_BUSY = 5;
/** Two processes that try at the same instant can both fail, so SQLite tries again for this long. */
const BUSY_TIMEOUT_MS = 300;
/** The locks held by this process: the garbage collector would close a database without references, lock and all. */
const held = new Set<DatabaseSync>();

/**
 * Locks `path` for this process until `release` or the end of the process, kill -9 included: SQLite holds a lock of the
 * operating system on `<path>.lock`. Makes the folder of `path` when it is missing.
 * @param inUse message of the StartError when another process holds the lock
 * @throws StartError when another process holds the lock, the folder cannot be written, or another user can write it
 */
export function lockFile(path: string, inUse = `${path} is in use by another process`): { release(): void } {
  const lock = openLock(path);
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) throw new StartError(inUse);
    throw unwritable(path, error);
  }
  held.add(lock);
  return { release: () => void (held.delete(lock) && lock.close()) };
}

/** Whether another process holds the lock of this path. */
export function isLocked(path: string): boolean {
  if (!existsSync(`${path}.lock`)) return false;
  using lock = new DatabaseSync(`${path}.lock`);
  try {
    lock.prepare('SELECT count(*) FROM sqlite_schema').get();
    return false;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return true;
    throw unwritable(path, error);
  }
}

function openLock(path: string): DatabaseSync {
  requireOwnFolder(dirname(path));
  makeFolder(dirname(path));
  try {
    return new DatabaseSync(`${path}.lock`, { timeout: BUSY_TIMEOUT_MS });
  } catch (error) {
    throw unwritable(path, error);
  }
}

const unwritable = (path: string, cause: unknown): StartError =>
  new StartError(`cannot write in the folder ${dirname(path)}: ${(cause as Error).message}`, { cause });
